"""The lines of a text, and their encoding into fairseq's numbers, in each process of a preparation."""

from __future__ import annotations

import array
import io
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainkit.data.bpe import Bpe
from trainkit.data.documents import Bundle, Piece, documents_of
from trainkit.data.tokenize_unit import Encode, Part, split_of
from trainkit.data.words import text_encoder
from wikitext import ZipPiece


def _documents(unit: Piece | Bundle) -> Iterator[tuple[list[str], int, type[str]]]:
    """Read the lines of each document or Part, with its bytes; an empty line ends your own documents."""
    for text, size in documents_of(unit):
        if isinstance(unit, ZipPiece):  # WikiText, whose lines end with a newline alone
            yield list(io.StringIO(text, newline="\n")), size, type(text)
        else:
            yield [*text.splitlines(keepends=True), *["\n"] * (type(text) is not Part)], size, type(text)


def read_lines(unit: Piece | Bundle) -> Iterator[tuple[str, int]]:
    """Read the documents of a unit as stripped lines, each with a newline behind it."""
    for lines, size, kind in _documents(unit):
        yield kind("".join(f"{line.strip()}\n" for line in lines)), size


def training_lines(units: Sequence[Any], validation_every: int) -> Iterator[str]:
    """Read the lines of the training split of all units."""
    for unit in units:
        number = 0
        for lines, _, kind in _documents(unit):
            if split_of(unit, number, validation_every=validation_every) == "train":
                yield from lines
            number += kind is not Part


@dataclass(frozen=True)
class LineEncoder:
    """An encoder of stripped lines, created in each process."""

    bpe: Bpe
    indices: array.array[int]
    """fairseq's index of each id; the last one is the end of a line."""

    def load(self) -> Encode:
        """Return a function from documents to the indices of their lines, each with its end."""
        # Each core has a process, so threads of the library would only compete with them.
        os.environ.update(TOKENIZERS_PARALLELISM="false", RAYON_NUM_THREADS="1")
        index_of, kind = self.indices.__getitem__, self.indices.typecode
        encode = text_encoder(self.bpe.open(), lambda ids: array.array(kind, map(index_of, ids)).tobytes())
        end = self.indices[-1:].tobytes()

        def of_documents(texts: list[str]) -> list[Sequence[int]]:
            lines = [text.split("\n")[:-1] for text in texts]
            found = iter(encode([line for each in lines for line in each]))
            return [array.array(kind, end.join([*itertools.islice(found, len(each)), b""])) for each in lines]

        return of_documents
