"""Encoding of lines into fairseq's indices, in threads, returned in the order of the lines.

Threads are enough, since the tokenizers library releases Python's lock.
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
    """fairseq's index of each id, in the type of its files; the last one is the end of a line."""

# Lines that are encoded in one call, which bounds the memory, also where lines are long.
BATCH_LINES = 4096
BATCH_CHARACTERS = 2**16
# Batches a thread, its current one included, so that it need not wait for the reader.
AHEAD = 2
# The type of a line's size in the file of sizes: C's int, as in fairseq's index.
SIZE_TYPE = "i"


class Encoding(Protocol):
    """The tokenizers library's encoding of a line."""

    @property
    def ids(self) -> list[int]:
        """The ids of the encoder."""


class Tokenizer(Protocol):
    """The part of the tokenizers library's tokenizer that is used here."""

    def encode_batch_fast(self, lines: list[str], *, add_special_tokens: bool) -> Sequence[Encoding]:
        """Return the ids of each line."""


@dataclass(frozen=True, kw_only=True)
class Encoded:
    """A batch as it is written into the files."""

    indices: bytes
    sizes: bytes
    """The tokens of each line, its end included."""
    lines: int
    tokens: int
    text_bytes: int


def encoded(
    lines: Iterable[str], *, tokenizer: Tokenizer, indices: Indices, workers: int
) -> Generator[Encoded]:
    """Encode lines in some threads; memory does not grow with the text."""
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
        # After an interruption, remaining batches are not waited for.
        threads.shutdown(cancel_futures=True)


def batches(lines: Iterator[str]) -> Iterator[list[str]]:
    """Yield lines in lists that memory holds easily."""
    for first in lines:
        batch, characters = [first], len(first)
        for line in itertools.islice(lines, BATCH_LINES - 1):
            batch.append(line)
            characters += len(line)
            if characters >= BATCH_CHARACTERS:
                break
        yield batch


def encode(lines: list[str], *, tokenizer: Tokenizer, indices: Indices) -> Encoded:
    """Return each line's indices and its end; an empty line is an end alone, as in fairseq-preprocess."""
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
