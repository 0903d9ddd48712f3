"""Token shards: a corpus as files of token ids, and a manifest with their sizes and checksums.

FOLDER/manifest.json is written last, by rename, so a folder that has one is whole. Shards are the ids one
after another, uint16 or uint32, little endian, in files such as train-00000.bin and val-00000.bin. In packed
shards, whole examples fill sequences of one length, and the highest bits of an id (FIRST, TRAINED) have the
borders of the examples and the mask of the loss.
"""

from __future__ import annotations

import bisect
import hashlib
import itertools
import json
from collections.abc import Iterable
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
ROUND, MIN_PROPOSED = 512, 64
"""Divisors of the lengths of sequences that a message proposes: of longer and of shorter ones."""
FIRST, TRAINED = 1 << 30, 1 << 31
"""Bits of packed ids: the first of an example; one whose next id counts in the loss."""
ID_BITS = FIRST - 1
"""The bits that are the id itself."""


class ShardError(Exception):
    """An error in text or token shards: what is wrong and how to fix it, in one sentence."""


@dataclass(frozen=True)
class Shard:
    """One file of token ids."""

    file: str
    tokens: int
    sha256: str
    documents: int = 0
    """Number of documents, 0 of versions that did not count them."""
    longest: int = 0
    """Tokens of the longest document, a dropped one included."""
    dropped: int = 0
    """Number of examples that did not fit a packed sequence."""
    padding: int = 0
    """Tokens at the ends of packed sequences that belong to no example."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The contents of a folder of shards."""

    dtype: str
    vocab_size: int
    tokenizer_sha256: str
    source: dict[str, Any]
    """The origin of the text; its "fingerprint" changes when the text does."""
    splits: dict[str, tuple[Shard, ...]]
    packed: int = 0
    """Length of packed sequences; 0 for a stream of tokens, from which sequences of any length are cut."""

    def shards(self) -> list[Shard]:
        """List the shards of all splits."""
        return [shard for split in self.splits.values() for shard in split]

    def tokens(self, split: str) -> int:
        """Count the tokens of one split."""
        return sum(shard.tokens for shard in self.splits.get(split, ()))

    def text_tokens(self, split: str) -> int:
        """Count the tokens of one split without padding."""
        return self.tokens(split) - sum(shard.padding for shard in self.splits.get(split, ()))

    def documents(self, split: str) -> int:
        """Count the documents of one split."""
        return sum(shard.documents for shard in self.splits.get(split, ()))

    def sequences(self, split: str, length: int) -> int:
        """Count the sequences of one split; those of a stream need one more token behind the last."""
        return max(0, self.tokens(split) - (not self.packed)) // length

    @property
    def longest(self) -> int:
        """Tokens of the longest document, a dropped one included."""
        return max((shard.longest for shard in self.shards()), default=0)

    @property
    def dropped(self) -> int:
        """Number of examples that did not fit a sequence."""
        return sum(shard.dropped for shard in self.shards())

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
            packed=found.get("packed", 0),
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ShardError(
            f"{where} is not a manifest of token shards ({error!r}): delete it and submit again."
        ) from error


def check_sequences(
    folder: Path, manifest: Manifest, length: int, *, ranks: int, validates: bool, setting: str = "SEQ_LEN"
) -> None:
    """Refuse shards of which a data-parallel rank would have no sequence of its own, or the validation none.

    Args:
        length: tokens of a sequence; `setting` is its name.

    Raises:
        ShardError: there are too few sequences.
    """
    train, val = (manifest.sequences(split, length) for split in SPLITS)
    if train >= ranks and (val > 0 or not validates):
        return
    ways = []
    if manifest.dropped:
        ways.append(f"{setting}={-(-manifest.longest // ROUND) * ROUND} (all fit)")
    if train >= ranks:
        ways.append(f"a smaller VALIDATION_EVERY than {manifest.source.get('validation_every')}")
        ways.append("EVAL_SEQUENCES=0 (no validation)")
    elif train:
        ways.append("fewer nodes")
    tokens = manifest.text_tokens
    shortest = min([tokens("train") // ranks, *[tokens("val")] * validates]) - 1
    if not manifest.dropped and max(manifest.packed and manifest.longest, MIN_PROPOSED) <= shortest:
        ways.append(f"{setting}={shortest // MIN_PROPOSED * MIN_PROPOSED}")
    both = " and one for validation" if validates else ""
    raise ShardError(
        f"each of the {ranks} data-parallel ranks needs a sequence of {setting}={length} to train on{both}, "
        f"and {folder} has {train:,} and {val:,}: give {', '.join([*ways, 'more text'])}."
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
