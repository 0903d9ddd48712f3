"""Imports of a workload's own modules and trainkit in tests, as on a node: their folders are on the path."""

import importlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import pytest

from training_cluster.paths import TRAINING

BERT, GPT2 = (TRAINING / name for name in ("bert-trainium", "gpt2"))
Import = Callable[[str], ModuleType]


@contextmanager
def workload_on_the_path(monkeypatch: pytest.MonkeyPatch, workload: str) -> Iterator[Import]:
    """Import by name; other workloads have modules of the same names, so none is left loaded."""
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


@dataclass(frozen=True)
class Letters:
    """Tokenizer for tests: an id for each byte, 256 as the end of text; as slow as is asked for."""

    seconds_a_batch: float = 0.0
    stops_in: str = ""
    """Folder of shards: once two units of it are finished, nothing more is encoded."""

    def load(self) -> Callable[[list[str]], list[Sequence[int]]]:
        from trainkit.data.tokenize_unit import Part  # noqa: PLC0415 (on the path of its tests)

        def encode(texts: list[str]) -> list[Sequence[int]]:
            time.sleep(self.seconds_a_batch)
            while self.stops_in and len(list(Path(self.stops_in).glob(".units/*.json"))) > 1:
                time.sleep(0.1)
            return [[*text.encode(), *[256] * (type(text) is not Part)] for text in texts]

        return encode
