"""trainkit and gpt2's own modules in tests, imported as on a node: their folders are on the path."""

from __future__ import annotations

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType

import pytest

from training_cluster.paths import TRAINING

GPT2 = TRAINING / "gpt2"
Import = Callable[[str], ModuleType]


@contextmanager
def gpt2_on_the_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[Import]:
    """Import by name; another workload may have modules of the same names, so none is left behind."""
    for folder in (TRAINING, GPT2):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    names = [file.stem for file in GPT2.glob("*.py")]
    for name in names:
        sys.modules.pop(name, None)
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)


@dataclass(frozen=True)
class Letters:
    """A tokenizer for tests: an id a byte, 256 as the end of text; as slow as is asked for."""

    seconds_a_batch: float = 0.0

    def load(self) -> Callable[[list[str]], list[Sequence[int]]]:
        def encode(texts: list[str]) -> list[Sequence[int]]:
            time.sleep(self.seconds_a_batch)
            return [[*text.encode(), 256] for text in texts]

        return encode
