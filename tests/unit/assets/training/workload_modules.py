"""A workload's own modules and trainkit in tests, imported as on a node: their folders are on the path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest

from training_cluster.paths import TRAINING

Import = Callable[[str], ModuleType]


@contextmanager
def workload_on_the_path(monkeypatch: pytest.MonkeyPatch, workload: str) -> Iterator[Import]:
    """Import by name; another workload may have modules of the same names, so none is left behind."""
    folder = TRAINING / workload
    for each in (TRAINING, folder):
        monkeypatch.syspath_prepend(str(each))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    names = [file.stem for file in folder.glob("*.py")]
    for name in names:
        sys.modules.pop(name, None)
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
