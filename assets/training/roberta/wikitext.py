"""WikiText-103 raw: 181 MB of zip with a sum that is known, read without being unpacked.

Its old address, an S3 bucket of research.metamind.io, answers 403 since 2024; the author of the set has it on
his own site, byte for byte the same.
"""

from __future__ import annotations

import io
import os
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

from binary_data import DataError
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.shards import sha256_of
from trainkit.run.files import sync

ZIP = "wikitext-103-raw-v1.zip"
URL = f"https://wikitext.smerity.com/{ZIP}"
# As TensorFlow Datasets, Hugging Face's datasets and others have recorded it (191,984,949 bytes).
SHA256 = "91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794"
SPLITS = ("train", "valid", "test")
RETRIES = 5


def have_zip(raw: Path, bucket: DatasetBucket | None) -> Path:
    """The zip in DATA_DIR/raw: as it lies there, or from the bucket, or from the web (WIKITEXT_URL).

    Raises:
        DataError: it cannot be had, or is another file.
    """
    return have_file(raw / ZIP, url=os.environ.get("WIKITEXT_URL") or URL, sha256=SHA256, bucket=bucket)


def have_file(file: Path, *, url: str, sha256: str | None, bucket: DatasetBucket | None) -> Path:
    """A file below DATA_DIR/raw: the one that lies there, else the bucket's, else the web's.

    Raises:
        DataError: it cannot be had, or its sum is another.
    """
    if not file.is_file():
        file.parent.mkdir(parents=True, exist_ok=True)
        key = str(file.relative_to(_data_of(file)))
        if bucket and bucket.head(key):
            print(f"data: taking {bucket.url(key)}")
            bucket.download(key, file)
        else:
            download(url, file)
    if sha256 and (found := sha256_of(file)) != sha256:
        raise DataError(
            f"{file} is not what it should be: its sha256 is {found}, not {sha256}; remove it, and submit "
            "again."
        )
    return file


def _data_of(file: Path) -> Path:
    """DATA_DIR: what is above raw/."""
    return next(folder.parent for folder in file.parents if folder.name == "raw")


def download(url: str, to: Path) -> None:
    """Fetch with curl, which goes on where it was cut off; the file has its name when it is whole.

    Raises:
        DataError: it cannot be fetched.
    """
    print(f"data: fetching {url}")
    partial = to.with_name(f".{to.name}.part")
    command = ["curl", "--fail", "--location", "--silent", "--show-error", "--retry", str(RETRIES)]
    # An hour of a dead connection is no download.
    command += ["--connect-timeout", "30", "--speed-limit", "1000", "--speed-time", "60"]
    command += ["--continue-at", "-", "--output", str(partial), url]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise DataError("there is no curl on this machine: install it, and submit again.") from error
    if done.returncode:
        said = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise DataError(f"could not fetch {url} ({said}): submit again, or bring the file to {to} yourself.")
    sync(partial)
    partial.replace(to)


def sizes(archive: Path) -> dict[str, int]:
    """Bytes of text of each split.

    Raises:
        DataError: it is no zip of WikiText.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            return {split: opened.getinfo(_member(opened, split)).file_size for split in SPLITS}
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{archive} is no whole zip ({error}): remove it, and submit again.") from error


def lines(archive: Path, split: str) -> Iterator[str]:
    """The lines of one split, with their ends; memory stays flat."""
    with zipfile.ZipFile(archive) as opened, opened.open(_member(opened, split)) as member:
        yield from io.TextIOWrapper(member, encoding="utf-8", newline="\n")


def _member(opened: zipfile.ZipFile, split: str) -> str:
    wanted = f"wiki.{split}.raw"
    for name in opened.namelist():
        if name.rpartition("/")[2] == wanted:
            return name
    raise DataError(
        f"{opened.filename} has no {wanted}, so it is not WikiText-103 raw: remove it, submit again."
    )
