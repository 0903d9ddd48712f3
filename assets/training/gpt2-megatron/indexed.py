"""Megatron's data files (NAME.bin, NAME.idx), made of token shards, with their sizes and sums."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from trainkit.data.shards import SPLITS, Manifest, read_manifest, sha256_of
from trainkit.data.verify import DataFile, verify
from trainkit.run.files import sync, write_whole

FOLDER = "megatron"
FILE = "manifest.json"
CACHE = "cache"
SUFFIXES = (".bin", ".idx")
# For larger vocabularies Megatron's files have ids of 4 bytes (DType.optimal_dtype).
SMALL_VOCABULARY = 65_500


@dataclass(frozen=True, kw_only=True)
class Indexed:
    """Data in Megatron's format."""

    folder: Path
    made_of: str
    """The sha256 of the manifest of the shards."""
    vocab_size: int
    end_of_text: int
    tokens: dict[str, int]
    files: dict[str, tuple[int, str]]
    """The size and the sha256 of each file."""

    @property
    def prefixes(self) -> dict[str, Path]:
        """The path of each split's files without .bin and .idx, as Megatron expects it."""
        return {split: self.folder / split for split in self.tokens}


def read_indexed(folder: Path) -> Indexed | None:
    """Read the folder `megatron` of a folder of shards; return None if it has no manifest."""
    file = folder / FOLDER / FILE
    if not file.is_file():
        return None
    noted = json.loads(file.read_text(encoding="utf-8"))
    noted["files"] = {name: (size, sha256) for name, (size, sha256) in noted["files"].items()}
    return Indexed(folder=folder / FOLDER, **noted)


def _has_size(file: Path, size: int) -> bool:
    return file.is_file() and file.stat().st_size == size


def _is_made(data: Indexed, made_of: str) -> bool:
    """Return True if the files exist with their sizes, and are made of the shards with this manifest."""
    sizes = [_has_size(data.folder / name, size) for name, (size, _) in data.files.items()]
    return data.made_of == made_of and all(sizes)


def data_sum(data: Indexed) -> str:
    """Return the sum of the tokens: data sets with the same sum have the same content."""
    return hashlib.sha256("".join(sha256 for _, sha256 in data.files.values()).encode()).hexdigest()


def make_indexed(shards: Path, *, end_of_text: int) -> Indexed:
    """Join the shards of each split in order, in one pass and little memory (a number a document).

    Files that exist are verified instead, once for each state.

    Raises:
        ShardError: a file is corrupt.
    """
    manifest, made_of = read_manifest(shards), sha256_of(shards / "manifest.json")
    found = read_indexed(shards)
    if found and _is_made(found, made_of):
        verify(found.folder, [DataFile(name, *is_known) for name, is_known in found.files.items()])
        print(f"data: {found.folder} is there")
        return found
    folder = shards / FOLDER
    folder.mkdir(exist_ok=True)
    (folder / FILE).unlink(missing_ok=True)
    # GPTDataset names its index files by the data's path, not by its content.
    shutil.rmtree(folder / CACHE, ignore_errors=True)
    for split in SPLITS:
        _join(shards, manifest, split, folder=folder, end_of_text=end_of_text)
    names = [split + suffix for split in SPLITS for suffix in SUFFIXES]
    made = Indexed(
        folder=folder,
        made_of=made_of,
        vocab_size=manifest.vocab_size,
        end_of_text=end_of_text,
        tokens={split: manifest.tokens(split) for split in SPLITS},
        files={name: ((folder / name).stat().st_size, sha256_of(folder / name)) for name in names},
    )
    noted = {name: value for name, value in asdict(made).items() if name != "folder"}
    write_whole(folder / FILE, json.dumps(noted, indent=1) + "\n")
    return made


def _join(shards: Path, manifest: Manifest, split: str, *, folder: Path, end_of_text: int) -> None:
    import numpy as np  # noqa: PLC0415 (the rest of this file needs no package)
    from trainkit.data.mapped import write_index  # noqa: PLC0415

    partial = {suffix: folder / f".{split}{suffix}.partial" for suffix in SUFFIXES}
    # The type that Megatron uses for a vocabulary of this size.
    kind = np.uint16 if manifest.vocab_size < SMALL_VOCABULARY else np.int32
    sizes = [np.zeros(0, dtype=np.int32)]
    with partial[".bin"].open("wb") as out:
        for number, shard in enumerate(manifest.splits[split], start=1):
            tokens = np.fromfile(shards / shard.file, dtype=np.dtype(manifest.dtype).newbyteorder("<"))
            # Each document ends with the end-of-text token, which text itself never produces.
            ends = np.flatnonzero(tokens == end_of_text) + 1
            if not len(ends) or ends[-1] < len(tokens):
                ends = np.append(ends, len(tokens))
            sizes.append(np.diff(ends, prepend=0).astype(np.int32))
            tokens.astype(kind, copy=False).tofile(out)
            print(f"data: {number} of {len(manifest.splits[split])} shards of {split} joined")
    write_index(partial[".idx"], np.concatenate(sizes), dtype=kind, documents=True)
    for suffix, file in partial.items():
        sync(file)
        file.replace(folder / f"{split}{suffix}")
