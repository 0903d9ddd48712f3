"""WikiText-103 raw: a zip of 181 MB with a known checksum, read without being unpacked.

Its old address, an S3 bucket of research.metamind.io, has answered 403 since 2024. The author of the data set
offers the same file on his own site.
"""

from __future__ import annotations

import io
import os
import zipfile
from collections.abc import Iterator
from pathlib import Path

from binary_data import DataError
from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.fetch import ensure_file

ZIP = "wikitext-103-raw-v1.zip"
URL = f"https://wikitext.smerity.com/{ZIP}"
# Checksum that TensorFlow Datasets and Hugging Face's datasets have recorded (191,984,949 bytes).
SHA256 = "91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794"
SPLITS = ("train", "valid", "test")


def have_zip(raw: Path, bucket: DatasetBucket | None) -> Path:
    """Return the zip in DATA_DIR/raw; download it from the bucket or the web (WIKITEXT_URL) if it is missing.

    Raises:
        FetchError: the zip cannot be downloaded, or is not the expected file.
    """
    url = os.environ.get("WIKITEXT_URL") or URL
    return ensure_file(raw / ZIP, url=url, key=f"raw/{ZIP}", bucket=bucket, sha256=SHA256)


def sizes(archive: Path) -> dict[str, int]:
    """Return the bytes of text in each split.

    Raises:
        DataError: the file is not a zip of WikiText.
    """
    try:
        with zipfile.ZipFile(archive) as opened:
            return {split: opened.getinfo(_member(opened, split)).file_size for split in SPLITS}
    except (zipfile.BadZipFile, OSError) as error:
        raise DataError(f"{archive} is not a complete zip ({error}): remove it, and submit again.") from error


def lines(archive: Path, split: str) -> Iterator[str]:
    """Read the lines of one split with their ends, without loading all of it."""
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
