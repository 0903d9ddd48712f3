"""Files that fairseq and Megatron map into memory (NAME.bin, NAME.idx), made of token shards.

They are in a folder beside the shards, with their sizes and sums. Both programs have the same format. Their
own writers need torch, whose import takes longer than to prepare 10 MB of text.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainkit.data.shards import MANIFEST, Manifest, read_manifest, sha256_of
from trainkit.data.verify import DataFile, verify
from trainkit.run.files import sync, write_whole

if TYPE_CHECKING:
    import numpy.typing as npt

MAGIC, VERSION = b"MMIDIDX\x00\x00", 1
# The number of each type of ids in the format.
TYPES = {"int32": 4, "int64": 5, "uint16": 8, "uint32": 9}
LONGEST = 2**31 - 1
"""Tokens of the longest sequence of the format; what is longer is cut where a shard ends."""
CACHE = "cache"


@dataclass(frozen=True, kw_only=True)
class Indexed:
    """Data in the format of one program."""

    folder: Path
    made_of: str
    """The sha256 of the manifest of the shards."""
    noted: dict[str, Any]
    """Numbers that the program needs in addition to its files, by name."""
    tokens: dict[str, int]
    """The tokens of each split, by the program's name of it."""
    files: dict[str, tuple[int, str]]
    """The size and the sha256 of each file."""

    @property
    def prefixes(self) -> dict[str, Path]:
        """The path of each split's files without .bin and .idx, as the programs expect it."""
        return {split: self.folder / split for split in self.tokens}

    @property
    def sum(self) -> str:
        """The sum of the files: data with the same sum have the same content."""
        return hashlib.sha256("".join(sha256 for _, sha256 in self.files.values()).encode()).hexdigest()

    def is_made_of(self, made_of: str) -> bool:
        """Return True if the files exist with their sizes, and are made of the shards with this manifest."""
        found = {file.name: file.stat().st_size for file in self.folder.glob("*.*")}
        return self.made_of == made_of and all(
            found.get(name) == size for name, (size, _) in self.files.items()
        )


def read_indexed(folder: Path) -> Indexed | None:
    """Read what make_indexed wrote into a folder; return None if it has no manifest."""
    file = folder / MANIFEST
    if not file.is_file():
        return None
    found = json.loads(file.read_text(encoding="utf-8"))
    if "noted" not in found:  # of an older version
        return None
    found["files"] = {name: (size, sha256) for name, (size, sha256) in found["files"].items()}
    return Indexed(folder=folder, **found)


def make_indexed(
    folder: Path,
    *,
    splits: Mapping[str, str],
    end: int,
    dtype: str,
    documents: bool,
    noted: dict[str, Any],
    others: Mapping[str, bytes] | None = None,
) -> Indexed:
    """Join the shards of each split in order, in one pass and little memory (a number a sequence).

    Files that exist are verified instead, once for each state.

    Args:
        folder: a folder beside the shards.
        splits: the program's names of the splits of the shards.
        end: the id behind each sequence.
        dtype: the type of the ids in the files.
        documents: True to mark each sequence as a document, as Megatron does.
        others: more files of the folder, by name.

    Raises:
        ShardError: a file is corrupt.
    """
    shards = folder.parent
    manifest, made_of = read_manifest(shards), sha256_of(shards / MANIFEST)
    found = read_indexed(folder)
    if found and found.is_made_of(made_of):
        verify(folder, [DataFile(name, *is_known) for name, is_known in found.files.items()])
        print(f"data: {folder} is there")
        return found
    folder.mkdir(exist_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
    # GPTDataset names its index files by the data's path, not by its content.
    shutil.rmtree(folder / CACHE, ignore_errors=True)
    kept = {name: split for name, split in splits.items() if name in manifest.splits}
    names = [f"{split}.{kind}" for split in kept.values() for kind in ("bin", "idx")] + list(others or {})
    for name, split in kept.items():
        _join(manifest, name, folder / split, end=end, dtype=dtype, documents=documents)
    for name, content in (others or {}).items():
        (folder / name).write_bytes(content)
        sync(folder / name)
    made = Indexed(
        folder=folder,
        made_of=made_of,
        noted=noted,
        tokens={split: manifest.tokens(name) for name, split in kept.items()},
        files={name: ((folder / name).stat().st_size, sha256_of(folder / name)) for name in names},
    )
    described = {name: value for name, value in asdict(made).items() if name != "folder"}
    write_whole(folder / MANIFEST, json.dumps(described, indent=1) + "\n")
    return made


def _join(manifest: Manifest, split: str, to: Path, *, end: int, dtype: str, documents: bool) -> None:
    """Write the files of one split, whose shards are in the folder above."""
    import numpy as np  # noqa: PLC0415 (reading needs no package)

    partial = {suffix: to.with_name(f".{to.name}{suffix}.partial") for suffix in (".bin", ".idx")}
    sizes, rest = list[Any](), 0  # tokens of the sequence that has not ended
    with partial[".bin"].open("wb") as out:
        for number, shard in enumerate(manifest.splits[split], start=1):
            file = to.parent.parent / shard.file
            tokens = np.fromfile(file, dtype=np.dtype(manifest.dtype).newbyteorder("<"))
            if rest and rest + len(tokens) > LONGEST:
                sizes.append([rest])
                rest = 0
            # Each sequence ends with a token that text itself never produces, perhaps in a later shard.
            ends = np.flatnonzero(tokens == end) + 1
            sizes.append(np.diff(ends, prepend=-rest).astype(np.int32))
            rest = len(tokens) - int(ends[-1]) if len(ends) else rest + len(tokens)
            tokens.astype(dtype, copy=False).tofile(out)
            print(f"data: {number} of {len(manifest.splits[split])} shards of {split} joined")
    sizes.append([rest] if rest else [])
    lengths = np.concatenate([np.asarray(each, dtype=np.int32) for each in sizes])
    write_index(partial[".idx"], lengths, dtype=dtype, documents=documents)
    for suffix, written in partial.items():
        sync(written)
        written.replace(to.with_name(f"{to.name}{suffix}"))


def write_index(file: Path, sizes: npt.ArrayLike, *, dtype: npt.DTypeLike, documents: bool) -> None:
    """Write the index of consecutive sequences in a .bin, with 20 bytes of memory per sequence.

    Args:
        sizes: the number of ids of each sequence.
    """
    import numpy as np  # noqa: PLC0415

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
