"""fairseq's binary data as a folder that is whole or not there: manifest.json, written last, tells.

Beside it lie the BPE (encoder.json, vocab.bpe), dict.txt and, for each split, fairseq's .bin and .idx. Needs
no package.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.shards import sha256_of
from trainkit.run.files import write_whole

FORMAT = 1
MANIFEST = "manifest.json"
ENCODER, MERGES, DICTIONARY = "encoder.json", "vocab.bpe", "dict.txt"


class DataError(Exception):
    """What is wrong with text or data, and how to mend it, in one sentence."""


@dataclasses.dataclass(frozen=True)
class DataFile:
    """A file, and what it has to be."""

    name: str
    size_bytes: int
    sha256: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Manifest:
    """What a folder holds."""

    fingerprint: str
    """Changes when the text or the BPE would."""
    corpus: str
    vocab_size: int
    symbols: int
    """Of the dictionary, fairseq's own and <mask> among them: the model's output width."""
    tokens: dict[str, int]
    """Of each split, ends of lines among them."""
    files: tuple[DataFile, ...]

    @property
    def dictionary_sha256(self) -> str:
        """Tells dictionaries apart: a model fits to one of them."""
        return next(file.sha256 for file in self.files if file.name == DICTIONARY)


def describe(folder: Path) -> tuple[DataFile, ...]:
    """The BPE's and the binary files of a folder, read once for their sums."""
    paths = [
        *(folder / name for name in (ENCODER, MERGES, DICTIONARY)),
        *sorted(folder.glob("*.bin")),
        *sorted(folder.glob("*.idx")),
    ]
    return tuple(DataFile(path.name, path.stat().st_size, sha256_of(path)) for path in paths)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Make a folder whole."""
    content = {"format": FORMAT, **dataclasses.asdict(manifest)}
    write_whole(folder / MANIFEST, json.dumps(content, indent=2) + "\n")


def parse_manifest(text: str, *, where: str) -> Manifest:
    """A manifest from its text.

    Raises:
        DataError: it is none, or of another format.
    """
    try:
        content: dict[str, Any] = json.loads(text)
        files = tuple(DataFile(**each) for each in content.pop("files"))
        if content.pop("format") != FORMAT:
            raise DataError(f"{where} is of another format: remove its folder, and submit again.")
        return Manifest(files=files, **content)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{where} is no manifest ({error}): remove its folder, and submit again.") from error


def read_manifest(folder: Path) -> Manifest | None:
    """What a folder holds; None if there is none, or it is not whole.

    Raises:
        DataError: the manifest is none.
    """
    file = folder / MANIFEST
    if not file.is_file():
        return None
    return parse_manifest(file.read_text(encoding="utf-8"), where=str(file))


def check_data(folder: Path, *, sums: bool) -> Manifest:
    """What a folder holds, when its files have the right sizes and, with `sums`, the right content.

    Raises:
        DataError: which file is wrong.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(
            f"there is no data in {folder}: prepare.sh makes it, with the same CORPUS and VOCAB_SIZE."
        )
    for file in manifest.files:
        path = folder / file.name
        size = path.stat().st_size if path.is_file() else None
        if size != file.size_bytes:
            found = "missing" if size is None else f"{size:,} bytes long"
            raise DataError(
                f"{path} is {found}, {MANIFEST} says {file.size_bytes:,} bytes: remove {folder}, "
                "and submit again."
            )
        if sums and (found := sha256_of(path)) != file.sha256:
            raise DataError(
                f"{path} is corrupt: its sha256 is {found}, {MANIFEST} says {file.sha256}; "
                f"remove {folder}, and submit again."
            )
    return manifest


def take_from(bucket: DatasetBucket, folder: Path, *, fits: Callable[[Manifest], bool]) -> bool:
    """Fetch a folder that the bucket has and that fits, its manifest last; whether there was one.

    Raises:
        BucketError: the bucket does not answer, or a file there is corrupt.
        DataError: what is there is no data.
    """
    key = f"{folder.name}/{MANIFEST}"
    text = bucket.text(key)
    if text is None:
        return False
    manifest = parse_manifest(text, where=bucket.url(key))
    if not fits(manifest):
        return False
    folder.mkdir(parents=True, exist_ok=True)
    # Until all of it is there, what is there is not data.
    (folder / MANIFEST).unlink(missing_ok=True)
    for file in manifest.files:
        path = folder / file.name
        if not (path.is_file() and sha256_of(path) == file.sha256):
            print(f"data: taking {bucket.url(folder.name)}/{file.name}, {file.size_bytes / 1e6:,.1f} MB")
            bucket.download(f"{folder.name}/{file.name}", path, sha256=file.sha256)
    write_manifest(folder, manifest)
    return True


def bring_to(bucket: DatasetBucket, folder: Path, manifest: Manifest) -> None:
    """Bring a folder there, its manifest last; what is there already is left.

    Raises:
        BucketError: the bucket does not take it.
    """
    for file in manifest.files:
        if bucket.upload(folder / file.name, f"{folder.name}/{file.name}", sha256=file.sha256):
            print(f"data: {file.name}, {file.size_bytes / 1e6:,.1f} MB, is in {bucket.url(folder.name)}")
    own = folder / MANIFEST
    bucket.upload(own, f"{folder.name}/{MANIFEST}", sha256=sha256_of(own))
