"""The part of the binary data that fairseq itself decides: each id's index, their type, dict.txt, the .idx.

The import takes seconds, since fairseq imports all of itself.
"""

from __future__ import annotations

import array
import io
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from binary_data import DataError

# fairseq logs which packages it could use if they were installed.
logging.getLogger("fairseq").setLevel(logging.WARNING)
from fairseq.data import Dictionary  # noqa: E402
from fairseq.data.indexed_dataset import MMapIndexedDataset, best_fitting_int_dtype  # noqa: E402

if TYPE_CHECKING:
    from encoding import Indices


@dataclass(frozen=True, kw_only=True)
class Numbering:
    """The map from the encoder's ids to fairseq's indices."""

    indices: Indices
    """The index of each id; the last one is the end of a line."""
    dictionary: str
    """The content of dict.txt as fairseq-preprocess saves it."""


def read_numbering(file: Path) -> Numbering:
    """Read the numbering from a dictionary that has all ids.

    Raises:
        DataError: fairseq cannot read it.
    """
    try:
        dictionary = Dictionary.load(str(file))
    except (RuntimeError, ValueError) as error:
        said = " ".join(str(error).split())
        raise DataError(
            f"fairseq cannot read {file} ({said}): bring one that belongs to the encoder, and submit again."
        ) from error
    index_of = {int(symbol): index for symbol, index in dictionary.indices.items() if symbol.isdecimal()}
    # The type that fairseq-preprocess takes: it has no <mask> in the dictionary yet.
    indices = np.full(max(index_of) + 2, dictionary.unk(), dtype=best_fitting_int_dtype(len(dictionary)))
    indices[list(index_of)] = list(index_of.values())
    indices[-1] = dictionary.eos()
    saved = io.StringIO()
    dictionary.save(saved)
    return Numbering(indices=indices, dictionary=saved.getvalue())


def write_index(file: Path, sizes: array.array[int], *, indices: Indices) -> None:
    """Write the .idx of a .bin from the tokens of each line; it takes 50 bytes of memory a line."""
    with MMapIndexedDataset.Index.writer(str(file), indices.dtype.type) as index:
        index.write(sizes)
