"""Documents of raw/, a user's own text in DATA_DIR: *.txt, *.jsonl and *.parquet, for every workload.

A text file is one document. Subfolders are read, and *.gz and *.zst. Big files are cut into pieces, so that
several processes can read one of them; a line, or a group of parquet's rows, belongs to the piece in which it
begins. Small files are bundled. Only parquet and zst need a package.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import io
import itertools
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from trainkit.data.rows import TEXTS, Rows, parquet_rows
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Part, ReadUnit, Unit

OWN = "raw"
"""The folder of your own text, and the value of CORPUS that selects it."""
SUFFIXES = (".txt", ".jsonl", ".parquet")
COMPRESSED = (".gz", ".zst")
TEXT_BYTES_A_COMPRESSED_BYTE, TEXT_BYTES_A_PARQUET_BYTE = 4, 2
"""About; they are for the progress, the size of pieces and the check of the space."""
# One shard of 30 MB, which takes one core a minute.
PIECE_BYTES = 2**26
# Files of this size together are one shard, so that 100,000 files of a page are not as many shards.
BUNDLE_BYTES = 2**22
# A document is read in parts of this size, so that memory remains constant.
BLOCK_CHARACTERS = 4000
# Long lines are read in parts of this size, so that memory remains constant.
LINE_BYTES = 2**20
# More text than this does not improve a vocabulary, but takes memory.
SAMPLE_CHARACTERS = 100_000_000
SAMPLE_UNITS = 8


@dataclass(frozen=True, kw_only=True)
class Piece(Unit):
    """A file of text, or a part of it."""

    file: Path
    start: int = 0
    end: int | None = None
    last: int | None = None
    """End of the document of plain text in the file; None for that of the piece."""

    def open(self) -> IO[bytes]:
        """Open the file, of which this is a part."""
        if self.file.suffix == ".gz":
            return gzip.open(self.file)  # type: ignore[return-value]
        if self.file.suffix == ".zst":
            import pyarrow as pa  # noqa: PLC0415 (the rest of this file needs no package)

            return io.BufferedReader(pa.CompressedInputStream(self.file.open("rb"), "zstd"))
        return self.file.open("rb")


@dataclass(frozen=True, kw_only=True)
class Bundle(Unit):
    """Small files that are read one after another."""

    pieces: tuple[Piece, ...]


def kind_of(file: Path) -> str:
    """Return the end of a file's name without that of its compression; "" for what is not read."""
    if file.suffix not in COMPRESSED:
        return file.suffix
    # Crawls have lines of JSON in *.json.gz (C4, Dolma). Parquet is compressed within.
    return {".txt": ".txt", ".jsonl": ".jsonl", ".json": ".jsonl"}.get(Path(file.stem).suffix, "")


def all_files(folder: Path) -> list[Path]:
    """List the files of a folder and its subfolders by path, without hidden ones."""
    found = (file for file in folder.rglob("*") if file.is_file())
    return sorted(f for f in found if not any(part.startswith(".") for part in f.relative_to(folder).parts))


def own_files(data: Path, *, without: Collection[str] = ()) -> list[Path]:
    """List the files of text in DATA_DIR/raw by path; arguments as of text_files."""
    return text_files(data / OWN, without=without)


def text_files(
    folder: Path, *, suffixes: Collection[str] = SUFFIXES, without: Collection[str] = ()
) -> list[Path]:
    """List the files of text in a folder by path, except some names of files and subfolders."""
    return [
        file
        for file in all_files(folder)
        if kind_of(file) in suffixes and not any(part in without for part in file.relative_to(folder).parts)
    ]


def fingerprint_of(files: Sequence[Path], folder: Path) -> str | None:
    """Return a string that changes with the files' names in a folder, sizes and times; None without files."""
    return _sum("\n".join(_stamp(file, folder) for file in files)) if files else None


def units_of(files: Sequence[Path], folder: Path, *, validation_every: int) -> tuple[Piece | Bundle, ...]:
    """List the units of the files of a folder: big ones cut into pieces, small ones bundled.

    Of a few files of text none can be spared for validation: each gives its end, 1/`validation_every` of it.
    """
    if len(files) < validation_every and all(file.suffix == ".txt" for file in files):
        pieces: list[Piece] = []
        for file in files:
            size = file.stat().st_size
            cut = size - size // validation_every
            pieces += pieces_of(file, folder, end=cut, split="train")
            pieces += pieces_of(file, folder, start=cut, split="val")
        return tuple(pieces)
    return tuple(_bundled(piece for file in files for piece in pieces_of(file, folder)))


def _bundled(pieces: Iterable[Piece]) -> Iterator[Piece | Bundle]:
    held: list[Piece] = []

    def bundle() -> Iterator[Piece | Bundle]:
        if len(held) == 1:
            yield held[0]
        elif held:
            yield Bundle(
                name=f"{held[0].name} and {len(held) - 1:,} more",
                size_bytes=sum(piece.size_bytes for piece in held),
                fingerprint=_sum("".join(piece.fingerprint for piece in held)),
                pieces=tuple(held),
            )
        held.clear()

    for piece in pieces:
        if sum(each.size_bytes for each in held) + piece.size_bytes > BUNDLE_BYTES:
            yield from bundle()
        held.append(piece)
    yield from bundle()


def pieces_of(
    file: Path,
    folder: Path,
    *,
    piece_bytes: int = PIECE_BYTES,
    start: int = 0,
    end: int | None = None,
    split: str = "",
) -> list[Piece]:
    """Cut a file of a folder, or its bytes from `start` to `end`, into pieces; an empty text is none."""
    size, name = file.stat().st_size, file.relative_to(folder).as_posix()
    end, is_whole = size if end is None else end, file.suffix in COMPRESSED
    cuts = cuts_of(file.suffix, start, end, piece_bytes=piece_bytes)
    scale = TEXT_BYTES_A_COMPRESSED_BYTE if file.suffix in COMPRESSED else 1
    kept = f"{name} ({split})" if split else name
    return [
        Piece(
            name=kept if len(cuts) == 1 else f"{kept}, part {number}",
            size_bytes=(b - a) * scale,
            fingerprint=_sum(f"{_stamp(file, folder)} {a} {b}"),
            split=split,
            source=name,
            file=file,
            start=a,
            end=None if is_whole else b,
            last=None if is_whole else end,
        )
        for number, (a, b) in enumerate(cuts, start=1)
    ]


def cuts_of(suffix: str, start: int, end: int, *, piece_bytes: int = PIECE_BYTES) -> list[tuple[int, int]]:
    """Return ranges of bytes of about `piece_bytes` of text, whose lines or groups of rows are read together.

    A compressed file is one range.
    """
    if suffix in COMPRESSED:
        return [(start, end)]
    if suffix == ".parquet":
        piece_bytes //= TEXT_BYTES_A_PARQUET_BYTE
    cuts = [(at, min(at + piece_bytes, end)) for at in range(start, end, piece_bytes)]
    return cuts or [(start, end)] * (suffix == ".parquet")  # which an empty one cannot be


def _stamp(file: Path, folder: Path) -> str:
    found = file.stat()
    return f"{file.relative_to(folder).as_posix()} {found.st_size} {found.st_mtime_ns}"


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def documents_of(unit: Piece | Bundle, *, rows: Rows = TEXTS) -> Iterator[tuple[str, int]]:
    """Read the documents of a unit, or their Parts, each with the bytes read for it.

    Raises:
        ShardError: the content of the file is not of the type that its name ends with.
    """
    for piece in unit.pieces if isinstance(unit, Bundle) else (unit,):
        if kind_of(piece.file) == ".parquet":
            yield from parquet_rows(piece.file, rows, start=piece.start, end=piece.end)
        elif kind_of(piece.file) == ".jsonl":
            yield from json_lines(piece, rows)
        else:
            yield from text_parts(piece)


def text_parts(piece: Piece) -> Iterator[tuple[str, int]]:
    """Read plain text in Parts; the block that reaches the end of the document is no Part.

    The last pieces of a file have no line, and so no text, if a long one begins before them.
    """
    reached = 0

    def lines() -> Iterator[bytes]:
        nonlocal reached
        for at, line in raw_lines(piece, limit=LINE_BYTES):
            reached = at + len(line)
            yield line

    found = blocks(decoded(lines()))
    block = next(found, "")
    for following in found:
        yield Part(block), len(block.encode())
        block = following
    if block:
        yield block if reached >= (piece.last or 0) else Part(block), len(block.encode())


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
    try:
        with piece.open() as opened:
            at, whole = 0, True
            if piece.start:
                # A line that began earlier belongs to the previous piece.
                opened.seek(piece.start - 1)
                while (part := opened.readline(LINE_BYTES)) and not part.endswith(b"\n"):
                    continue
                at = opened.tell()
            while (piece.end is None or at < piece.end or not whole) and (line := opened.readline(limit)):
                yield at, line
                at, whole = at + len(line), line.endswith(b"\n")
    except (OSError, EOFError, zlib.error) as error:
        raise ShardError(f"{piece.file} cannot be read ({error}): replace it, and submit again.") from error


def decoded(parts: Iterable[bytes]) -> Iterator[str]:
    """Decode UTF-8, of which a part may end within a character; invalid bytes become U+FFFD."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for part in parts:
        yield decoder.decode(part)
    if rest := decoder.decode(b"", final=True):
        yield rest


def json_lines(piece: Piece, rows: Rows) -> Iterator[tuple[str, int]]:
    """Read the document of each line's JSON object, with the bytes of the line."""
    for at, line in raw_lines(piece):
        if not line.strip():
            continue
        row: Any = None
        try:
            text = rows.document(row := json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ShardError(
                f"{piece.file}, byte {at:,}: this line is not {rows.wanted_instead(row)} ({error}): fix or "
                "remove it, and submit again."
            ) from error
        yield text, len(line)


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
