"""Encoding of one split into fairseq's .bin and the sizes of its lines, resumed where it was interrupted."""

from __future__ import annotations

import array
import contextlib
import dataclasses
import itertools
import json
import time
from collections.abc import Iterator
from concurrent.futures import Executor
from pathlib import Path

from encoding import SIZE_TYPE, encoded
from trainkit.run.files import sync, write_whole

# At most 16 MB of text are encoded again after an interruption.
RECORD_EVERY_BATCHES = 64
PROGRESS_EVERY_S = 10.0


@dataclasses.dataclass(kw_only=True)
class Progress:
    """The part of a split that is in its files and on the disk."""

    lines: int = 0
    text_bytes: int = 0
    tokens: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class Split:
    """The files of one split."""

    binary: Path
    """fairseq's .bin, which exists once it is complete."""
    work: Path
    """The folder for temporary files."""
    token_bytes: int
    """Bytes of a token in the .bin."""

    @property
    def name(self) -> str:
        """The name of the split: train, valid or test."""
        return self.binary.stem

    @property
    def partial(self) -> Path:
        """The incomplete .bin."""
        return self.work / f"{self.binary.name}.partial"

    @property
    def sizes(self) -> Path:
        """The file with the tokens of each line."""
        return self.work / f"{self.name}.sizes"

    @property
    def record(self) -> Path:
        """The file with the progress."""
        return self.work / f"{self.name}.json"

    def read_progress(self) -> Progress:
        """Read the progress of an earlier start; none if its file is missing."""
        if self.record.is_file() and (self.binary.is_file() or self.partial.is_file()):
            return Progress(**json.loads(self.record.read_text(encoding="utf-8")))
        return Progress()

    def read_sizes(self) -> array.array[int]:
        """Read the tokens of each line."""
        return array.array(SIZE_TYPE, self.sizes.read_bytes())


def encode_split(
    lines: Iterator[str],
    split: Split,
    *,
    pool: Executor,
    workers: int,
    total_bytes: int,
) -> int:
    """Encode a split and return its tokens, the end of each line included.

    An interrupted encoding resumes after the last recorded batch.
    """
    done = split.read_progress()
    if split.binary.is_file():
        return done.tokens
    started = said = time.monotonic()
    first = done.text_bytes
    rest = itertools.islice(lines, done.lines, None)
    batches = encoded(rest, pool=pool, workers=workers)
    with split.partial.open("ab") as binary, split.sizes.open("ab") as sizes, contextlib.closing(batches):
        binary.truncate(done.tokens * split.token_bytes)
        sizes.truncate(done.lines * array.array(SIZE_TYPE).itemsize)
        for number, batch in enumerate(itertools.chain(batches, [None]), start=1):
            if batch:
                binary.write(batch.indices)
                sizes.write(batch.sizes)
                done.lines += batch.lines
                done.text_bytes += batch.text_bytes
                done.tokens += batch.tokens
            if not batch or number % RECORD_EVERY_BATCHES == 0:
                for file in (binary, sizes):
                    file.flush()
                    sync(Path(file.name))
                write_whole(split.record, json.dumps(dataclasses.asdict(done)) + "\n")
            if not batch or time.monotonic() - said > PROGRESS_EVERY_S:
                said = time.monotonic()
                speed = (done.text_bytes - first) / (said - started)
                print(_progress(split.name, done.text_bytes, total_bytes, speed))
    split.partial.rename(split.binary)
    return done.tokens


def _progress(name: str, done: int, total: int, bytes_per_s: float) -> str:
    remaining = max(0, total - done) / bytes_per_s if bytes_per_s else 0
    return (
        f"data: {name}, {done / 1e6:,.1f} of {total / 1e6:,.1f} MB encoded, {bytes_per_s / 1e6:,.1f} MB/s, "
        f"{remaining:.0f} s to go"
    )
