"""Token shards: a corpus as files of token ids, and a manifest with their sizes and checksums.

FOLDER/manifest.json is written last, by rename, so a folder that has one is whole. Shards are the ids one
after another, uint16 or uint32, little endian, in files such as train-00000.bin and val-00000.bin.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainkit.run.files import write_whole

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

FORMAT = 1
MANIFEST = "manifest.json"
SPLITS = ("train", "val")
BYTES_A_TOKEN = {"uint16": 2, "uint32": 4}
MAX_UINT16_VOCABULARY = 2**16
HASH_BLOCK = 2**22


class ShardError(Exception):
    """An error in text or token shards: what is wrong and how to fix it, in one sentence."""


@dataclass(frozen=True)
class Shard:
    """One file of token ids."""

    file: str
    tokens: int
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The contents of a folder of shards."""

    dtype: str
    vocab_size: int
    tokenizer_sha256: str
    source: dict[str, Any]
    """The origin of the text; its "fingerprint" changes when the text does."""
    splits: dict[str, tuple[Shard, ...]]

    def shards(self) -> list[Shard]:
        """List the shards of all splits."""
        return [shard for split in self.splits.values() for shard in split]

    def tokens(self, split: str) -> int:
        """Count the tokens of one split."""
        return sum(shard.tokens for shard in self.splits.get(split, ()))

    @property
    def tokens_of_splits(self) -> dict[str, int]:
        """Count the tokens of each split."""
        return {split: self.tokens(split) for split in SPLITS}

    @property
    def sum_of_tokens(self) -> str:
        """Checksum of all shards: data sets with the same one have the same tokens."""
        return hashlib.sha256("".join(shard.sha256 for shard in self.shards()).encode()).hexdigest()

    def size_bytes(self, shard: Shard) -> int:
        """Return the size that the file of a shard must have."""
        return shard.tokens * BYTES_A_TOKEN[self.dtype]


def dtype_of(vocab_size: int) -> str:
    """Return the smaller of the two types that holds every id."""
    return "uint16" if vocab_size <= MAX_UINT16_VOCABULARY else "uint32"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, which marks the folder as complete; all shards must be on the disk."""
    write_whole(folder / MANIFEST, json.dumps({"format": FORMAT, **asdict(manifest)}, indent=1) + "\n")


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a folder.

    Raises:
        ShardError: the folder has no manifest, or its format is unknown.
    """
    file = folder / MANIFEST
    if not file.is_file():
        raise ShardError(f"{file} is missing, so this data is incomplete: prepare.sh makes it, submit again.")
    return parse_manifest(file.read_text(encoding="utf-8"), where=str(file))


def parse_manifest(text: str, *, where: str) -> Manifest:
    """Parse manifest.json; `where` is its origin, for the message of ShardError."""
    try:
        found = json.loads(text)
        if found["format"] != FORMAT:
            raise ShardError(
                f"{where} has format {found['format']}, and this program reads {FORMAT}: delete it and "
                "submit again."
            )
        if missing := {*SPLITS} - {*found["splits"]}:
            raise KeyError(*missing)
        return Manifest(
            dtype=found["dtype"],
            vocab_size=found["vocab_size"],
            tokenizer_sha256=found["tokenizer_sha256"],
            source=found["source"],
            splits={name: tuple(Shard(**each) for each in of) for name, of in found["splits"].items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ShardError(
            f"{where} is not a manifest of token shards ({error!r}): delete it and submit again."
        ) from error


def check_lengths(folder: Path, tokens: Mapping[str, int], *, length: int, setting: str) -> None:
    """Check that each split has a sequence, and the token behind it.

    Args:
        tokens: number of tokens of each split.
        length: tokens of a sequence; `setting` is its name.

    Raises:
        ShardError: a split has fewer tokens.
    """
    for split, count in tokens.items():
        if count <= length:
            raise ShardError(
                f"{folder} has {count} tokens in {split}, fewer than {setting} ({length}) takes: add text, "
                f"or lower {setting} (for val also VALIDATION_EVERY)."
            )


def sha256_of(file: Path) -> str:
    """Return the sha256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with file.open("rb") as opened:
        while block := opened.read(HASH_BLOCK):
            digest.update(block)
    return digest.hexdigest()


class Tokens:
    """The tokens of one split as one long sequence; files are mapped, not read.

    A file is opened when the first window needs it. If 512 ranks opened the 12,000 files of a large corpus at
    their start, the metadata server of the shared file system would get 6 million requests.
    """

    def __init__(self, folder: Path, manifest: Manifest, split: str) -> None:
        import numpy as np  # noqa: PLC0415 (the rest of this file needs no package)

        shards = [shard for shard in manifest.splits[split] if shard.tokens]
        self._files = [folder / shard.file for shard in shards]
        # The format is little endian, whatever the machine.
        self._kind = np.dtype(manifest.dtype).newbyteorder("<")
        self._maps: dict[int, npt.NDArray[Any]] = {}
        self._ends = list(itertools.accumulate(shard.tokens for shard in shards))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def windows(self, starts: Iterable[int], length: int) -> npt.NDArray[np.int64]:
        """Return (starts, length) ids."""
        import numpy as np  # noqa: PLC0415

        return np.stack([self.window(start, length) for start in starts])

    def window(self, start: int, length: int) -> npt.NDArray[np.int64]:
        """Return `length` ids from `start` on; they may span several shards.

        Raises:
            IndexError: the window would begin before the first token or end after the last.
        """
        import numpy as np  # noqa: PLC0415

        if start < 0 or start + length > len(self):
            raise IndexError(f"tokens {start} to {start + length} of {len(self)}")
        parts: list[npt.NDArray[Any]] = []
        at = bisect.bisect_right(self._ends, start)
        while length > 0:
            begin = start - (self._ends[at - 1] if at else 0)
            part = self._map(at)[begin : begin + length]
            parts.append(part)
            start, length, at = start + len(part), length - len(part), at + 1
        return np.concatenate(parts).astype(np.int64) if parts else np.zeros(0, dtype=np.int64)

    def _map(self, at: int) -> npt.NDArray[Any]:
        import numpy as np  # noqa: PLC0415

        if at not in self._maps:
            self._maps[at] = np.memmap(self._files[at], dtype=self._kind, mode="r")
        return self._maps[at]
