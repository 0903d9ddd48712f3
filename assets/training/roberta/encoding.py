"""Encoding of lines into fairseq's indices, in processes, returned in the order of the lines."""

from __future__ import annotations

import array
import itertools
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass

from trainkit.data.bpe import Bpe
from trainkit.data.tokenize_unit import serve
from trainkit.data.words import text_encoder

# Number of lines that are encoded in one call, which limits the memory, even for long lines.
BATCH_LINES = 4096
BATCH_CHARACTERS = 2**18
# Batches per process, including its current one, so that it does not wait for the reader.
AHEAD = 2
# The type of a line's size in the file of sizes: C's int, as in fairseq's index.
SIZE_TYPE = "i"


@dataclass(frozen=True)
class Coder:
    """A tokenizer and fairseq's numbers, created in each process."""

    bpe: Bpe
    indices: array.array[int]
    """fairseq's index of each id, in the type of its files; the last one is the end of a line."""

    def load(self) -> Callable[[Sequence[str]], list[bytes]]:
        """Return a function from lines to their indices, without the ends."""
        # Each core has a process, so threads of the library would only compete with them.
        os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        index_of, kind = self.indices.__getitem__, self.indices.typecode
        return text_encoder(self.bpe.open(), lambda ids: array.array(kind, map(index_of, ids)).tobytes())


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A batch as it is written into the files."""

    indices: bytes
    sizes: bytes
    """The tokens of each line, its end included."""
    lines: int
    tokens: int
    text_bytes: int


class Process:
    """State of a process of the pool, kept between batches."""

    end: bytes
    encode: Callable[[Sequence[str]], list[bytes]]


def begin(coder: Coder) -> None:
    """Prepare a process of the pool."""
    serve()
    Process.end, Process.encode = coder.indices[-1:].tobytes(), staticmethod(coder.load())


def encoded(lines: Iterable[str], *, pool: Executor, workers: int) -> Generator[Encoded]:
    """Encode lines in a pool; memory does not grow with the text."""
    ahead: deque[Future[Encoded]] = deque()
    try:
        for batch in batches(iter(lines)):
            ahead.append(pool.submit(encode, batch))
            if len(ahead) == AHEAD * workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        # After an interruption, do not wait for the remaining batches.
        for each in ahead:
            each.cancel()


def batches(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield lines in lists that fit into memory easily."""
    for first in lines:
        batch, characters = [first], len(first)
        for line in itertools.islice(lines, BATCH_LINES - 1):
            batch.append(line)
            characters += len(line)
            if characters >= BATCH_CHARACTERS:
                break
        yield batch


def encode(lines: list[str]) -> Encoded:
    """Return each line's indices and its end; an empty line is an end alone, as in fairseq-preprocess."""
    found = Process.encode([line.strip() for line in lines])
    item = len(Process.end)
    sizes = array.array(SIZE_TYPE, [len(each) // item + 1 for each in found])
    return Encoded(
        indices=Process.end.join([*found, b""]),
        sizes=sizes.tobytes(),
        lines=len(lines),
        tokens=sum(sizes),
        text_bytes=sum(len(line.encode()) for line in lines),
    )
