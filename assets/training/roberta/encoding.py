"""Batches of lines -> fairseq's indices, in threads, given back in the order of the lines.

Threads are enough: the tokenizers library works outside of Python's lock.
"""

from __future__ import annotations

import array
import itertools
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Indices = npt.NDArray[np.unsignedinteger[Any] | np.signedinteger[Any]]
    """fairseq's index of each id, in the type of its files; behind the last id the end of a line."""

# What is encoded in one go: bounds the memory, also where lines are long.
BATCH_LINES = 4096
BATCH_CHARACTERS = 2**16
# Batches a thread, with the one that it is at: it need not wait for the reader.
AHEAD = 2
# Of a line, in the file of sizes: C's int, as in fairseq's index.
SIZE_TYPE = "i"


class Encoding(Protocol):
    """What the tokenizers library makes of a line."""

    @property
    def ids(self) -> list[int]:
        """The encoder's."""


class Tokenizer(Protocol):
    """The part of the tokenizers library's that is used."""

    def encode_batch_fast(self, lines: list[str], *, add_special_tokens: bool) -> Sequence[Encoding]:
        """Each line's ids."""


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A batch, as it goes into the files."""

    indices: bytes
    sizes: bytes
    """Of each line in tokens, its end among them."""
    lines: int
    tokens: int
    text_bytes: int


def encoded(
    lines: Iterable[str], *, tokenizer: Tokenizer, indices: Indices, workers: int
) -> Generator[Encoded]:
    """Encode lines in so many threads; memory does not grow with the text."""
    threads = ThreadPoolExecutor(workers, thread_name_prefix="encode")
    ahead: deque[Future[Encoded]] = deque()
    try:
        for batch in batches(iter(lines)):
            ahead.append(threads.submit(encode, batch, tokenizer=tokenizer, indices=indices))
            if len(ahead) == AHEAD * workers:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        # After an interruption nobody waits for what is left.
        threads.shutdown(cancel_futures=True)


def batches(lines: Iterator[str]) -> Iterator[list[str]]:
    """Lines in lists that memory holds easily."""
    for first in lines:
        batch, characters = [first], len(first)
        for line in itertools.islice(lines, BATCH_LINES - 1):
            batch.append(line)
            characters += len(line)
            if characters >= BATCH_CHARACTERS:
                break
        yield batch


def encode(lines: list[str], *, tokenizer: Tokenizer, indices: Indices) -> Encoded:
    """Each line's indices and its end; an empty line is an end alone, as fairseq-preprocess has it."""
    found = tokenizer.encode_batch_fast([line.strip() for line in lines], add_special_tokens=False)
    end = len(indices) - 1
    ids: list[int] = []
    sizes = array.array(SIZE_TYPE)
    for each in found:
        before = len(ids)
        ids += each.ids
        ids.append(end)
        sizes.append(len(ids) - before)
    return Encoded(
        indices=indices[array.array("I", ids)].tobytes(),
        sizes=sizes.tobytes(),
        lines=len(lines),
        tokens=len(ids),
        text_bytes=sum(len(line.encode()) for line in lines),
    )
