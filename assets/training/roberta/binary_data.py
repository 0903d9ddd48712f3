"""fairseq's binary data: a folder that is complete once it has its manifest.json, which is written last.

It has the BPE (encoder.json, vocab.bpe), dict.txt and, for each split, fairseq's .bin and .idx. Needs no
package.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.shards import sha256_of
from trainkit.data.verify import DataFile, verify
from trainkit.run.files import write_whole

FORMAT = 1
MANIFEST = "manifest.json"
ENCODER, MERGES, DICTIONARY = "encoder.json", "vocab.bpe", "dict.txt"


class DataError(Exception):
    """An error in text or data: what is wrong and how to fix it, in one sentence."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
    """The contents of a folder."""

    fingerprint: str
    """A checksum that changes with the text or the BPE."""
    corpus: str
    vocab_size: int
    symbols: int
    """The size of the dictionary with fairseq's own symbols and <mask>: the model's output width."""
    tokens: dict[str, int]
    """The tokens of each split, ends of lines included."""
    files: tuple[DataFile, ...]

    @property
    def dictionary_sha256(self) -> str:
        """The dictionary's checksum, since a model fits only one dictionary."""
        return next(file.sha256 for file in self.files if file.name == DICTIONARY)


def describe(folder: Path) -> tuple[DataFile, ...]:
    """List the BPE's and the binary files of a folder with their checksums."""
    paths = [
        *(folder / name for name in (ENCODER, MERGES, DICTIONARY)),
        *sorted(folder.glob("*.bin")),
        *sorted(folder.glob("*.idx")),
    ]
    return tuple(DataFile(path.name, path.stat().st_size, sha256_of(path)) for path in paths)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, which marks the folder as complete."""
    content = {"format": FORMAT, **dataclasses.asdict(manifest)}
    write_whole(folder / MANIFEST, json.dumps(content, indent=2) + "\n")


def parse_manifest(text: str, *, where: str) -> Manifest:
    """Parse a manifest; `where` is its origin, for the message of DataError.

    Raises:
        DataError: the text is not a manifest, or has another format.
    """
    try:
        content: dict[str, Any] = json.loads(text)
        files = tuple(DataFile(**each) for each in content.pop("files"))
        if content.pop("format") != FORMAT:
            raise DataError(f"{where} is of another format: remove its folder, and submit again.")
        return Manifest(files=files, **content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{where} is not a manifest ({error}): remove its folder, and submit again."
        ) from error


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest of a folder; return None if it has none, which means that it is incomplete.

    Raises:
        DataError: the file is not a manifest.
    """
    file = folder / MANIFEST
    if not file.is_file():
        return None
    return parse_manifest(file.read_text(encoding="utf-8"), where=str(file))


def open_data(folder: Path) -> Manifest:
    """Read the manifest of a folder whose files prepare.py has compared with it.

    Raises:
        DataError: the folder has no manifest.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(
            f"there is no data in {folder}: prepare.sh makes it, with the same CORPUS and VOCAB_SIZE."
        )
    return manifest


def check_data(folder: Path, manifest: Manifest) -> None:
    """Compare the files of a folder with its manifest: the sizes, and each content once.

    Raises:
        ShardError: a file is missing or wrong.
    """
    verify(folder, manifest.files, mend=f"remove {folder}, and submit again")


def download(bucket: DatasetBucket, folder: Path, *, fits: Callable[[Manifest], bool]) -> bool:
    """Download a folder, its manifest last; return False if the bucket has none that fits.

    Raises:
        BucketError: the bucket does not answer, or a file there is corrupt.
        DataError: the bucket's manifest is not a manifest.
    """
    key = f"{folder.name}/{MANIFEST}"
    text = bucket.text(key)
    if text is None:
        return False
    manifest = parse_manifest(text, where=bucket.url(key))
    if not fits(manifest):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    # The folder is incomplete until all files have arrived.
    (folder / MANIFEST).unlink(missing_ok=True)
    for file in manifest.files:
        path = folder / file.name
        if not (path.is_file() and sha256_of(path) == file.sha256):
            print(f"data: taking {bucket.url(folder.name)}/{file.name}, {file.size_bytes / 1e6:,.1f} MB")
            bucket.download(f"{folder.name}/{file.name}", path, sha256=file.sha256)
    write_manifest(folder, manifest)
    return True


def upload(bucket: DatasetBucket, folder: Path, manifest: Manifest) -> None:
    """Upload a folder, its manifest last; files that the bucket already has are skipped.

    Raises:
        BucketError: the bucket refuses it.
    """
    for file in manifest.files:
        if bucket.upload(folder / file.name, f"{folder.name}/{file.name}", sha256=file.sha256):
            print(f"data: {file.name}, {file.size_bytes / 1e6:,.1f} MB, is in {bucket.url(folder.name)}")
    own = folder / MANIFEST
    bucket.upload(own, f"{folder.name}/{MANIFEST}", sha256=sha256_of(own))
