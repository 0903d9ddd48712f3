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

from trainkit.data.shards import FIRST, FORMAT, SPLITS, Shard, ShardError, dtype_of
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
    source: str = ""
    """Name of the file of which it is a part, by which its documents are divided; empty for its own."""


class Part(str):
    """A part of a document, which the next text continues."""

    __slots__ = ()


ReadUnit = Callable[[Any], Iterator[tuple[str, int]]]
"""A module's function that reads the documents of a unit, or their Parts, each with the bytes read for it.

Raises ShardError, if the unit cannot be read.
"""
Encode = Callable[[list[str]], list[Sequence[int]]]


class Encoder(Protocol):
    """A tokenizer that is created in each process."""

    def load(self) -> Encode:
        """Return a function that converts documents to ids, with the end of text after each but Parts.

        The documents of a call are of one split.
        """
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
    """One of this many documents is for validation."""
    layout: str = ""
    """The encoder's own version: changes when it returns other ids for the same text and tokenizer."""
    pack: int = 0
    """Length of the sequences into which examples, which begin with FIRST, are packed; 0 for a stream."""
    padding: int = 0
    """Id of the rest of a packed sequence."""
    group: int = 1
    """Number of examples of a document that stay together in a packed sequence, or are left out together."""

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits of the units, at least train and val."""
        return tuple(dict.fromkeys((*SPLITS, *(unit.split for unit in self.units if unit.split))))

    @property
    def dtype(self) -> str:
        """The type of the ids in the files."""
        return "uint32" if self.pack else dtype_of(self.vocab_size)

    def fingerprint(self, number: int) -> str:
        """Return a checksum that changes with a unit's shards: with its text, its split or the tokenizer."""
        unit = self.units[number]
        made_of = [
            unit.fingerprint,
            *([unit.split] if unit.split else []),
            self.tokenizer_sha256,
            self.validation_every,
            self.dtype,
            FORMAT,
            self.layout,
            self.pack,
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
    writers = {split: _Writer(recipe.folder / f"{split}-{number:05d}.bin", recipe) for split in recipe.splits}
    for split, texts in _batches(recipe, recipe.units[number]):
        for text, ids in zip(texts, _Process.encode(texts), strict=True):
            writers[split].add(ids, ends=not isinstance(text, Part))
    shards = {split: writer.finish() for split, writer in writers.items()}
    record = {
        "fingerprint": recipe.fingerprint(number),
        "splits": {split: asdict(shard) if shard else None for split, shard in shards.items()},
    }
    write_whole(record_of(recipe.folder, number), json.dumps(record) + "\n")
    return shards


def split_of(unit: Unit, number: int, *, validation_every: int) -> str:
    """Return the split of a unit's document of a number: by a hash, so that any layout gives the same share.

    The first document for validation is by the file's name, since a unit may have few; the others follow in
    equal distances.
    """
    first = int.from_bytes(hashlib.sha256((unit.source or unit.name).encode()).digest()[:8], "big")
    return unit.split or ("val" if (first + number) % validation_every == 0 else "train")


def _batches(recipe: Recipe, unit: Unit) -> Iterator[tuple[str, list[str]]]:
    """Yield documents of a split in lists that fit into memory easily; count the bytes read."""
    texts: dict[str, list[str]] = {split: [] for split in recipe.splits}
    characters = dict.fromkeys(texts, 0)
    number = 0
    for text, size in recipe.read(unit):
        with _Process.read_bytes.get_lock():
            _Process.read_bytes.value += size
        if not text:
            continue
        split = split_of(unit, number, validation_every=recipe.validation_every)
        number += not isinstance(text, Part)
        texts[split].append(text)
        characters[split] += len(text)
        if len(texts[split]) >= BATCH_DOCUMENTS or characters[split] >= BATCH_CHARACTERS:
            if _Process.stop.is_set():
                raise ShardError("another unit could not be read")
            yield split, texts[split]
            texts[split], characters[split] = [], 0
    yield from ((split, waiting) for split, waiting in texts.items() if waiting)


class _Writer:
    """The writer of one shard, which gets its name when it is complete."""

    def __init__(self, file: Path, recipe: Recipe) -> None:
        self._file, self._recipe = file, recipe
        self._partial = file.with_name(f".{file.name}.partial")
        self._opened = self._partial.open("wb")
        self._digest = hashlib.sha256()
        self._tokens = self._documents = self._longest = self._dropped = self._padding = 0
        self._length = 0
        """Tokens of the document that has not ended."""

    def add(self, ids: Sequence[int], *, ends: bool = True) -> None:
        """Write a document or its next part, or its examples into sequences, each whole or not at all."""
        if not self._recipe.pack:
            self._write(ids)
            self._length += len(ids)
            if ends:
                self._count(self._length)
                self._length = 0
            return
        starts = [at for at, number in enumerate(ids) if number & FIRST][:: self._recipe.group]
        for start, end in itertools.pairwise([*starts, len(ids)]):
            length = end - start
            if length > self._recipe.pack:
                self._dropped, self._longest = self._dropped + 1, max(self._longest, length)
                continue
            if length > -self._tokens % self._recipe.pack:
                self._pad()
            self._write(ids[start:end])
            self._count(length)

    def _count(self, length: int) -> None:
        self._documents, self._longest = self._documents + 1, max(self._longest, length)

    def _pad(self) -> None:
        """Fill the rest of a sequence."""
        if left := -self._tokens % self._recipe.pack:
            self._padding += left
            self._write([self._recipe.padding | FIRST, *[self._recipe.padding] * (left - 1)])

    def _write(self, ids: Sequence[int]) -> None:
        data = array.array(ARRAY_TYPES[self._recipe.dtype], ids)
        self._opened.write(data)
        self._digest.update(data)
        self._tokens += len(ids)

    def finish(self) -> Shard | None:
        """Give the file its name and return the shard; None, and no file, if it has no document."""
        if self._recipe.pack:
            self._pad()
        self._longest = max(self._longest, self._length)
        self._opened.close()
        if not self._tokens and not self._dropped:
            self._partial.unlink()
            return None
        sync(self._partial)
        self._partial.replace(self._file)
        return Shard(
            file=self._file.name,
            tokens=self._tokens,
            sha256=self._digest.hexdigest(),
            documents=self._documents,
            longest=self._longest,
            dropped=self._dropped,
            padding=self._padding,
        )
