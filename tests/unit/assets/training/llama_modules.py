"""llama-fsdp2's own modules in tests: imported as on a node, where its folder is on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from training_cluster.paths import TRAINING

LLAMA = TRAINING / "llama-fsdp2"
Import = Callable[[str], ModuleType]


@contextmanager
def llama_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Import by name; another workload may have modules of the same names, so none is left behind."""
    for folder in (TRAINING, LLAMA):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    names = [file.stem for file in LLAMA.glob("*.py")]
    for name in names:
        sys.modules.pop(name, None)
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
