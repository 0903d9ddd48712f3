"""Documents out of files: *.txt, *.jsonl and *.parquet, streaming; only parquet needs a package.

Big text files are cut into pieces, so that several processes can read one of them. A line belongs to the
piece in which it begins.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainkit.data.corpus import blocks
from trainkit.data.prepare_tokens import Unit
from trainkit.data.shards import ShardError

SUFFIXES = (".txt", ".jsonl", ".parquet")
# One shard of 30 MB, and a minute's work of one core.
PIECE_BYTES = 2**26
# Of a line without an end: read in parts, so that memory stays flat.
LINE_BYTES = 2**20
ROWS = 256


@dataclass(frozen=True, kw_only=True)
class Piece(Unit):
    """A file of text, or a part of it."""

    file: Path
    start: int = 0
    end: int | None = None


def pieces_of(file: Path, *, piece_bytes: int = PIECE_BYTES) -> list[Piece]:
    """The pieces of one file: as many as its size asks for, one for parquet."""
    found = file.stat()
    made_of = f"{file.name} {found.st_size} {found.st_mtime_ns}"
    step = found.st_size if file.suffix == ".parquet" else piece_bytes
    starts = range(0, max(1, found.st_size), max(1, step))
    return [
        Piece(
            name=file.name if len(starts) == 1 else f"{file.name}, part {number}",
            size_bytes=(end := min(start + max(1, step), found.st_size)) - start,
            fingerprint=hashlib.sha256(f"{made_of} {start} {end}".encode()).hexdigest(),
            file=file,
            start=start,
            end=end,
        )
        for number, start in enumerate(starts, start=1)
    ]


def documents_of(piece: Piece) -> Iterator[tuple[str, int]]:
    """The documents of a piece, with the bytes read for each.

    Raises:
        ShardError: the file is not what its name says.
    """
    if piece.file.suffix == ".parquet":
        return parquet_rows(piece.file)
    if piece.file.suffix == ".jsonl":
        return json_lines(piece)
    # A block of plain text is one document.
    return ((block, len(block.encode())) for block in blocks(text_lines(piece)))


def raw_lines(piece: Piece, *, limit: int = -1) -> Iterator[tuple[int, bytes]]:
    """Where each line that begins in the piece begins, and its bytes; at most `limit` of them at a time."""
    with piece.file.open("rb") as opened:
        if piece.start:
            # The line that is under way here is the piece's before.
            opened.seek(piece.start - 1)
            while (part := opened.readline(LINE_BYTES)) and not part.endswith(b"\n"):
                continue
        at, whole = opened.tell(), True
        while (piece.end is None or at < piece.end or not whole) and (line := opened.readline(limit)):
            yield at, line
            at, whole = at + len(line), line.endswith(b"\n")


def text_lines(piece: Piece) -> Iterator[str]:
    """Lines of UTF-8 with their ends; what is no UTF-8 becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for _, part in raw_lines(piece, limit=LINE_BYTES):
        yield decoder.decode(part)
    if rest := decoder.decode(b"", final=True):
        yield rest


def json_lines(piece: Piece) -> Iterator[tuple[str, int]]:
    """The "text" of each line's JSON object."""
    for at, line in raw_lines(piece):
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"]
            if not isinstance(text, str):
                raise TypeError(f"text is {text!r:.40}")
        except (ValueError, KeyError, TypeError) as error:
            raise ShardError(
                f'{piece.file}, byte {at:,}: this line is no JSON object with a string "text" ({error}): '
                "mend or remove it, and submit again."
            ) from error
        yield text, len(line)


def parquet_rows(file: Path) -> Iterator[tuple[str, int]]:
    """The column "text" of a parquet file, some rows at a time."""
    import pyarrow as pa  # noqa: PLC0415 (the rest of this file needs no package)
    import pyarrow.parquet as pq  # noqa: PLC0415

    size = file.stat().st_size
    try:
        with pq.ParquetFile(file) as table:
            if "text" not in table.schema_arrow.names:
                columns = ", ".join(table.schema_arrow.names)
                raise ShardError(
                    f'{file} has no column "text" (it has {columns}): rename one, and submit again.'
                )
            rows = max(1, table.metadata.num_rows)
            for batch in table.iter_batches(batch_size=ROWS, columns=["text"]):
                for text in batch.column(0).to_pylist():
                    yield text or "", size // rows
    except (pa.ArrowException, OSError) as error:
        raise ShardError(
            f"{file} is no readable parquet file ({error}): replace it, and submit again."
        ) from error
