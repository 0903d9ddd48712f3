"""The numbers that fairseq gives the symbols of a dictionary, in the type that fairseq-preprocess uses.

It does not import fairseq, which takes longer than encoding 10 MB of text. A test compares the files.
"""

from __future__ import annotations

import array
import hashlib
from dataclasses import dataclass
from pathlib import Path

from trainkit.data.bpe import Bpe
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import ARRAY_TYPES

# They come before the symbols of a dictionary.
SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
END, UNKNOWN = 2, 3
# With more symbols fairseq writes numbers of 4 bytes (best_fitting_int_dtype).
SMALL_DICTIONARY = 65_500


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """The map from the encoder's ids to fairseq's indices."""

    indices: array.array[int]
    """The index of each id; the last one is the end of a line."""
    dtype: str
    """The type of the indices in fairseq's files."""
    dictionary: str
    """The content of dict.txt as fairseq-preprocess saves it."""

    def sha256(self, bpe: Bpe) -> str:
        """Return the checksum of a BPE with this dictionary."""
        return hashlib.sha256(f"{bpe.sha256}\n{self.dictionary}".encode()).hexdigest()


def read_numbering(file: Path) -> Numbering:
    """Read the numbering from a dictionary that has all ids. Raises ShardError: fairseq cannot read it."""
    index_of = {symbol: index for index, symbol in enumerate(SPECIAL)}
    saved = []
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            symbol, _, count = line.rstrip().rpartition(" ")
            if not symbol or not count.isdecimal() or symbol in index_of:
                raise ShardError(
                    f"{file}, line {number}: fairseq cannot read {line.rstrip()!r:.60}. Allowed: a symbol "
                    "of its own, a blank, a count. Bring one that belongs to the encoder, and submit again."
                )
            index_of[symbol] = len(index_of)
            saved.append(f"{symbol} {int(count)}\n")
    # The type that fairseq-preprocess uses, whose dictionary has no <mask> yet.
    dtype = "uint16" if len(index_of) < SMALL_DICTIONARY else "uint32"
    ids = {int(symbol): index for symbol, index in index_of.items() if symbol.isdecimal()}
    indices = array.array(ARRAY_TYPES[dtype], [UNKNOWN]) * (max(ids) + 2)
    for each, index in ids.items():
        indices[each] = index
    indices[-1] = END
    return Numbering(indices=indices, dtype=dtype, dictionary="".join(saved))
