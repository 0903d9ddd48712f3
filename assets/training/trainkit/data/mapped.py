"""The index (.idx) of ids in a .bin, which fairseq and Megatron map into memory; both have the same format.

Their own writers need torch, whose import takes longer than to prepare 10 MB of text.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

MAGIC, VERSION = b"MMIDIDX\x00\x00", 1
# The number of each type of ids in the format.
TYPES = {"int32": 4, "int64": 5, "uint16": 8, "uint32": 9}


def write_index(file: Path, sizes: npt.ArrayLike, *, dtype: npt.DTypeLike, documents: bool) -> None:
    """Write the index of consecutive sequences in a .bin, with 20 bytes of memory per sequence.

    Args:
        sizes: the number of ids of each sequence.
        dtype: the type of the ids.
        documents: True to mark each sequence as a document, as Megatron does.
    """
    kind = np.dtype(dtype)
    lengths: npt.NDArray[Any] = np.asarray(sizes, dtype="<i4")
    starts = (np.cumsum(lengths, dtype="<i8") - lengths) * kind.itemsize
    with file.open("wb") as out:
        out.write(MAGIC + struct.pack("<QBQ", VERSION, TYPES[kind.name], len(lengths)))
        if documents:
            out.write(struct.pack("<Q", len(lengths) + 1))
        lengths.tofile(out)
        starts.tofile(out)
        if documents:
            np.arange(len(lengths) + 1, dtype="<i8").tofile(out)
