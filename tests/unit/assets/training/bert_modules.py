"""bert-trainium's own modules in tests: imported as on a node, where their folders are on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from training_cluster.paths import TRAINING

BERT = TRAINING / "bert-trainium"
Import = Callable[[str], ModuleType]


@contextmanager
def bert_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Import by name; another workload may have modules of the same names, so none is left behind."""
    for folder in (TRAINING, BERT):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    names = [file.stem for file in BERT.glob("*.py")]
    for name in names:
        sys.modules.pop(name, None)
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
