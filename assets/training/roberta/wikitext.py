"""WikiText-103 raw: a zip of 181 MB with a known checksum, read without being unpacked.

Its old address, an S3 bucket of research.metamind.io, has answered 403 since 2024. The author of the data set
offers the same file on his own site.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trainkit.data.dataset_bucket import DatasetBucket
from trainkit.data.documents import PIECE_BYTES, Piece
from trainkit.data.fetch import ensure_file
from trainkit.data.shards import ShardError

ZIP = "wikitext-103-raw-v1.zip"
URL = f"https://wikitext.smerity.com/{ZIP}"
# Checksum that TensorFlow Datasets and Hugging Face's datasets have recorded (191,984,949 bytes).
SHA256 = "91c00ae287f0d699e18605c84afc9e45c192bc6b7797ff8837e5474655a33794"
CORPUS = "wikitext-103"
SPLITS = {"train": "train", "val": "valid", "test": "test"}
"""Names of the splits in the zip."""


def have_zip(raw: Path, bucket: DatasetBucket | None) -> Path:
    """Return the zip in DATA_DIR/raw; download it from the bucket or the web (WIKITEXT_URL) if it is missing.

    Raises:
        FetchError: the zip cannot be downloaded, or is not the expected file.
    """
    url = os.environ.get("WIKITEXT_URL") or URL
    return ensure_file(raw / ZIP, url=url, key=f"raw/{ZIP}", bucket=bucket, sha256=SHA256)


@dataclass(frozen=True, kw_only=True)
class ZipPiece(Piece):
    """A part of one split in the zip."""

    member: str

    def open(self) -> IO[bytes]:
        """Open the text of the split."""
        return zipfile.ZipFile(self.file).open(self.member)


def units(archive: Path) -> tuple[ZipPiece, ...]:
    """List the parts of all splits, without unpacking them.

    Raises:
        ShardError: the file is not a zip of WikiText.
    """
    found = []
    try:
        with zipfile.ZipFile(archive) as opened:
            for split, theirs in SPLITS.items():
                info = opened.getinfo(_member(opened, theirs))
                for start in range(0, info.file_size, PIECE_BYTES):
                    end = min(start + PIECE_BYTES, info.file_size)
                    found.append(
                        ZipPiece(
                            name=f"{theirs} from byte {start:,}",
                            size_bytes=end - start,
                            fingerprint=f"{SHA256} {theirs} {start} {end}",
                            split=split,
                            file=archive,
                            start=start,
                            end=end,
                            member=info.filename,
                        )
                    )
    except (zipfile.BadZipFile, OSError) as error:
        raise ShardError(
            f"{archive} is not a complete zip ({error}): remove it, and submit again."
        ) from error
    return tuple(found)


def _member(opened: zipfile.ZipFile, split: str) -> str:
    wanted = f"wiki.{split}.raw"
    for name in opened.namelist():
        if name.rpartition("/")[2] == wanted:
            return name
    raise ShardError(
        f"{opened.filename} has no {wanted}, so it is not WikiText-103 raw: remove it, submit again."
    )
