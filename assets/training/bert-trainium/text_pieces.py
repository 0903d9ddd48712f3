"""Text files in pieces that one process reads each, and the documents of a piece; needs no package.

A document is a block of about 4,000 characters that ends at an empty line (trainkit.data.corpus): what
BERT's second segments follow in, or are drawn from elsewhere.
"""

from __future__ import annotations

import codecs
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pairs import FORMAT
from trainkit.data.corpus import LINE_CHARACTERS, blocks
from trainkit.data.tokenize_unit import Unit

# One shard of 30 to 40 MB, and a minute's work of one core.
PIECE_BYTES = 2**26
# A vocabulary does not get better with more text than this, and training it takes memory.
SAMPLE_CHARACTERS = 100_000_000
SAMPLE_PIECES = 8


@dataclass(frozen=True, kw_only=True)
class Piece(Unit):
    """A part of a file: the lines that begin in it."""

    file: Path
    start: int
    end: int


def pieces_of(files: Sequence[Path], *, context: int, piece_bytes: int = PIECE_BYTES) -> tuple[Piece, ...]:
    """The pieces of all files; of an empty file none."""
    return tuple(
        Piece(
            name=f"{file.name}, from byte {start:,}" if start else file.name,
            size_bytes=end - start,
            fingerprint=_sum(f"{FORMAT} {context} {file.name} {size} {made_at} {start} {end}"),
            file=file,
            start=start,
            end=end,
        )
        for file in files
        for size, made_at in [(file.stat().st_size, file.stat().st_mtime_ns)]
        for start in range(0, size, piece_bytes)
        for end in [min(start + piece_bytes, size)]
    )


def documents_of(unit: Piece) -> Iterator[tuple[str, int]]:
    """The documents of a piece, with the bytes read for each."""
    return ((block, len(block.encode())) for block in blocks(_lines(unit)))


def _lines(piece: Piece) -> Iterator[str]:
    """Lines with their ends, very long ones in parts; what is no UTF-8 becomes U+FFFD."""
    with piece.file.open("rb") as opened:
        if piece.start:
            # The line that is under way here is the piece's before.
            opened.seek(piece.start - 1)
            while (part := opened.readline(LINE_CHARACTERS)) and not part.endswith(b"\n"):
                continue
        at, whole = opened.tell(), True
        # A part may end within a character, which the next part completes.
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while (at < piece.end or not whole) and (line := opened.readline(LINE_CHARACTERS)):
            yield decoder.decode(line)
            at, whole = at + len(line), line.endswith(b"\n")
        if rest := decoder.decode(b"", final=True):
            yield rest


def sample(pieces: Sequence[Piece], *, characters: int = SAMPLE_CHARACTERS) -> Iterator[str]:
    """The beginnings of a few pieces, spread over the text: all of a small one."""
    chosen = pieces
    if len(pieces) > SAMPLE_PIECES:
        chosen = list(itertools.islice(pieces[:: len(pieces) // SAMPLE_PIECES], SAMPLE_PIECES))
    for piece in chosen:
        left = characters // len(chosen)
        for text, _ in documents_of(piece):
            yield text
            left -= len(text)
            if left <= 0:
                break


def _sum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
