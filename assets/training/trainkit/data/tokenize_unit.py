"""Tokenizing of one unit of a corpus into its shards, in a process of prepare_tokens."""

from __future__ import annotations

import array
import hashlib
import itertools
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from multiprocessing.connection import wait as wait_for
from pathlib import Path
from typing import Any, Protocol

from trainkit.data.shards import FORMAT, SPLITS, Shard, ShardError, dtype_of
from trainkit.run.files import sync, write_whole

UNITS = ".units"
# Number of documents that are tokenized in one call, which limits a process's memory.
BATCH_DOCUMENTS = 256
BATCH_CHARACTERS = 2**22
# Types of array.array, whose byte order is the machine's: little endian on all of EC2.
ARRAY_TYPES = {"uint16": "H", "uint32": "I"}


@dataclass(frozen=True, kw_only=True)
class Unit:
    """A piece of a corpus."""

    name: str
    size_bytes: int
    fingerprint: str
    """A checksum that changes with the text."""
    split: str = ""
    """The split of all of its documents; empty to divide them."""


ReadUnit = Callable[[Any], Iterator[tuple[str, int]]]
"""A module's function that reads the documents of a unit, each with the number of bytes read for it.

Raises ShardError, if the unit cannot be read.
"""
Encode = Callable[[list[str]], list[Sequence[int]]]


class Encoder(Protocol):
    """A tokenizer that is created in each process."""

    def load(self) -> Encode:
        """Return a function that converts documents to ids, with the end of text after each."""
        ...


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """The inputs of a folder of shards."""

    folder: Path
    units: tuple[Unit, ...]
    read: ReadUnit
    encoder: Encoder
    vocab_size: int
    tokenizer_sha256: str
    source: dict[str, Any]
    validation_every: int
    """One of this many documents is for validation, in each unit."""
    layout: str = ""
    """The encoder's own version: changes when it returns other ids for the same text and tokenizer."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the units, at least train and val."""
        return tuple(dict.fromkeys((*SPLITS, *(unit.split for unit in self.units if unit.split))))

    @property
    def dtype(self) -> str:
        """The type of the ids in the files."""
        return dtype_of(self.vocab_size)

    def fingerprint(self, number: int) -> str:
        """Return a checksum that changes with a unit's shards: with its text, the tokenizer or the split."""
        made_of = [
            self.units[number].fingerprint,
            self.tokenizer_sha256,
            self.validation_every,
            self.dtype,
            FORMAT,
            self.layout,
        ]
        return hashlib.sha256(json.dumps(made_of).encode()).hexdigest()


def record_of(folder: Path, number: int) -> Path:
    """Return the file that records that a unit is finished."""
    return folder / UNITS / f"{number:05d}.json"


class _Process:
    """The state that a process keeps between units."""

    recipe: Recipe
    encode: Encode
    read_bytes: Any
    stop: Any


def begin(recipe: Recipe, read_bytes: Any, stop: Any) -> None:
    """Prepare a process of the pool."""
    serve()
    _Process.recipe, _Process.read_bytes, _Process.stop = recipe, read_bytes, stop
    _Process.encode = staticmethod(recipe.encoder.load())


def serve() -> None:
    """Let this process end when the one that started it ends or is killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    # The process that started it handles Ctrl-C.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    wait_for([sentinel])
    os._exit(1)


def make_unit(number: int) -> dict[str, Shard | None]:
    """Tokenize one unit: make its shards, then its record."""
    recipe = _Process.recipe
    unit, documents = recipe.units[number], 0
    writers = {
        split: _Writer(recipe.folder / f"{split}-{number:05d}.bin", recipe.dtype) for split in recipe.splits
    }
    for texts in _batches(recipe.read(unit)):
        for ids in _Process.encode(texts):
            documents += 1
            split = unit.split or ("val" if documents % recipe.validation_every == 0 else "train")
            writers[split].add(ids)
    shards = {split: writer.finish() for split, writer in writers.items()}
    record = {
        "fingerprint": recipe.fingerprint(number),
        "splits": {split: asdict(shard) if shard else None for split, shard in shards.items()},
    }
    write_whole(record_of(recipe.folder, number), json.dumps(record) + "\n")
    return shards


def _batches(documents: Iterator[tuple[str, int]]) -> Iterator[list[str]]:
    """Yield documents in lists that fit into memory easily; count the bytes read."""
    texts: list[str] = []
    characters = 0
    for text, size in itertools.chain(documents, [("", 0)]):
        last = not text and not size
        if text:
            texts.append(text)
            characters += len(text)
        if size:
            with _Process.read_bytes.get_lock():
                _Process.read_bytes.value += size
        if texts and (last or len(texts) >= BATCH_DOCUMENTS or characters >= BATCH_CHARACTERS):
            if _Process.stop.is_set():
                raise ShardError("another unit could not be read")
            yield texts
            texts, characters = [], 0


class _Writer:
    """The writer of one shard, which gets its name when it is complete."""

    def __init__(self, file: Path, dtype: str) -> None:
        self._file, self._type = file, ARRAY_TYPES[dtype]
        self._partial = file.with_name(f".{file.name}.partial")
        self._opened = self._partial.open("wb")
        self._digest = hashlib.sha256()
        self._tokens = 0

    def add(self, ids: Sequence[int]) -> None:
        data = array.array(self._type, ids)
        self._opened.write(data)
        self._digest.update(data)
        self._tokens += len(ids)

    def finish(self) -> Shard | None:
        """Give the file its name and return the shard; None, and no file, if it has no token."""
        self._opened.close()
        if not self._tokens:
            self._partial.unlink()
            return None
        sync(self._partial)
        self._partial.replace(self._file)
        return Shard(self._file.name, self._tokens, self._digest.hexdigest())
