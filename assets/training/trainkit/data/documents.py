"""Documents of raw/, a user's own text in DATA_DIR: *.txt, *.jsonl and *.parquet, for every workload.

Big text files are cut into pieces, so that several processes can read one of them. A line belongs to the
piece in which it begins. Only parquet needs a package.
"""

from __future__ import annotations

import codecs
import hashlib
import itertools
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import ReadUnit, Unit

OWN = "raw"
"""The folder of your own text, and the value of CORPUS that selects it."""
SUFFIXES = (".txt", ".jsonl", ".parquet")
PATTERNS = "*.txt, *.jsonl or *.parquet"
# One shard of 30 MB, which takes one core a minute.
PIECE_BYTES = 2**26
# A block of text is one example of the split into training and validation text.
BLOCK_CHARACTERS = 4000
# Long lines are read in parts of this size, so that memory remains constant.
LINE_BYTES = 2**20
ROWS = 256
# More text than this does not improve a vocabulary, but takes memory.
SAMPLE_CHARACTERS = 100_000_000
SAMPLE_UNITS = 8


@dataclass(frozen=True, kw_only=True)
class Piece(Unit):
    """A file of text, or a part of it."""

    file: Path
    start: int = 0
    end: int | None = None

    def open(self) -> IO[bytes]:
        """Open the file, of which this is a part."""
        return self.file.open("rb")


def own_files(data: Path, *, without: Collection[str] = ()) -> list[Path]:
    """List the files of text in DATA_DIR/raw by name, except some names."""
    return [file for file in text_files(data / OWN) if file.name not in without]


def text_files(folder: Path) -> list[Path]:
    """List the files of text in a folder by name."""
    return sorted(file for file in folder.glob("*") if file.suffix in SUFFIXES)


def fingerprint_of(files: Sequence[Path]) -> str | None:
    """Return a string that changes with the files' names, sizes and times; None without files."""
    return _sum("\n".join(map(_stamp, files))) if files else None


def pieces_of(file: Path, *, piece_bytes: int = PIECE_BYTES) -> list[Piece]:
    """Split a file into pieces of `piece_bytes`; parquet is one piece, an empty text none."""
    size = file.stat().st_size
    cuts = [(start, min(start + piece_bytes, size)) for start in range(0, size, piece_bytes)]
    if file.suffix == ".parquet":
        cuts = [(0, size)]
    return [
        Piece(
            name=file.name if len(cuts) == 1 else f"{file.name}, part {number}",
            size_bytes=end - start,
            fingerprint=_sum(f"{_stamp(file)} {start} {end}"),
            file=file,
            start=start,
            end=end,
        )
        for number, (start, end) in enumerate(cuts, start=1)
    ]


def _stamp(file: Path) -> str:
    found = file.stat()
    return f"{file.name} {found.st_size} {found.st_mtime_ns}"


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def documents_of(piece: Piece) -> Iterator[tuple[str, int]]:
    """Read the documents of a piece, each with the bytes read for it.

    Raises:
        ShardError: the content of the file is not of the type that its name ends with.
    """
    if piece.file.suffix == ".parquet":
        return parquet_rows(piece.file)
    if piece.file.suffix == ".jsonl":
        return json_lines(piece)
    # A block of plain text is one document.
    return ((block, len(block.encode())) for block in blocks(text_lines(piece)))


def blocks(lines: Iterable[str], *, characters: int = BLOCK_CHARACTERS) -> Iterator[str]:
    """Group lines into blocks that end at the first empty line after `characters`, or at twice that."""
    block: list[str] = []
    size = 0
    for line in lines:
        block.append(line)
        size += len(line)
        if size >= 2 * characters or (size >= characters and not line.strip()):
            yield "".join(block)
            block, size = [], 0
    if block:
        yield "".join(block)


def raw_lines(piece: Piece, *, limit: int = -1) -> Iterator[tuple[int, bytes]]:
    """Read the lines that begin in a piece, each with its position; at most `limit` bytes at a time."""
    with piece.open() as opened:
        if piece.start:
            # A line that began earlier belongs to the previous piece.
            opened.seek(piece.start - 1)
            while (part := opened.readline(LINE_BYTES)) and not part.endswith(b"\n"):
                continue
        at, whole = opened.tell(), True
        while (piece.end is None or at < piece.end or not whole) and (line := opened.readline(limit)):
            yield at, line
            at, whole = at + len(line), line.endswith(b"\n")


def text_lines(piece: Piece) -> Iterator[str]:
    """Read lines of UTF-8 with their ends, long lines in parts; invalid bytes become U+FFFD."""
    # A part may end within a character, which the next part completes.
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for _, part in raw_lines(piece, limit=LINE_BYTES):
        yield decoder.decode(part)
    if rest := decoder.decode(b"", final=True):
        yield rest


def json_lines(piece: Piece) -> Iterator[tuple[str, int]]:
    """Read the "text" of each line's JSON object, with the bytes of the line."""
    for at, line in raw_lines(piece):
        if not line.strip():
            continue
        try:
            text = json.loads(line)["text"]
            if not isinstance(text, str):
                raise TypeError(f"text is {text!r:.40}")
        except (ValueError, KeyError, TypeError) as error:
            raise ShardError(
                f'{piece.file}, byte {at:,}: this line is not a JSON object with a string "text" ({error}): '
                "fix or remove it, and submit again."
            ) from error
        yield text, len(line)


def parquet_rows(file: Path) -> Iterator[tuple[str, int]]:
    """Read the column "text" of a parquet file, some rows at a time."""
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
            f"{file} is not a readable parquet file ({error}): replace it, and submit again."
        ) from error


def sample(
    units: Sequence[Any],
    *,
    read: ReadUnit = documents_of,
    characters: int = SAMPLE_CHARACTERS,
) -> Iterator[str]:
    """Read the beginnings of a few units, spread over the corpus; all units of a small corpus."""
    chosen = units
    if len(units) > SAMPLE_UNITS:
        chosen = list(itertools.islice(units[:: len(units) // SAMPLE_UNITS], SAMPLE_UNITS))
    for unit in chosen:
        remaining = characters // len(chosen)
        for text, _ in read(unit):
            yield text
            remaining -= len(text)
            if remaining <= 0:
                break
