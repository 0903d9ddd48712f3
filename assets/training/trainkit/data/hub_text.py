"""Published texts: parquet files of the Hugging Face hub, each downloaded when it is needed, and kept.

Articles of Wikipedia without markup are Wikimedia's own extraction of its dumps.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainkit.data import hub
from trainkit.data.documents import (
    COMPRESSED,
    OWN,
    TEXT_BYTES_A_COMPRESSED_BYTE,
    Bundle,
    Piece,
    documents_of,
)
from trainkit.data.fetch import FetchError, size_of
from trainkit.data.lifecycle import LESS
from trainkit.data.rows import TEXTS, Rows
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Unit

WIKIPEDIA = "wikipedia"
WIKIPEDIA_EDITION = "20231101.en"
# 41 files and 6.4 million articles for English.
REPOSITORY, REVISION = "wikimedia/wikipedia", "b04c8d1ceb2f5cd4588862100d08de323dccfbaa"
TEXT_BYTES_A_DOWNLOADED_BYTE = 2
"""Parquet files are compressed to about half the size of their text."""


@dataclass(frozen=True, kw_only=True)
class Download(Unit):
    """A file of the hub."""

    remote: hub.HubFile
    file: Path


def space_of(unit: Unit, *, shards: float = 1.0) -> float:
    """Return the bytes that a unit takes: its shards, and its file if that is still to be downloaded.

    Args:
        shards: bytes of shards for each byte of text.
    """
    if not isinstance(unit, Download):
        return unit.size_bytes * shards
    file = 0 if unit.file.is_file() else unit.remote.size_bytes
    scale = TEXT_BYTES_A_DOWNLOADED_BYTE if unit.file.suffix == ".parquet" else 1
    return file + unit.size_bytes * scale * shards


def fetched_documents(unit: Download | Piece | Bundle, *, rows: Rows = TEXTS) -> Iterator[tuple[str, int]]:
    """Read the documents of a unit, after its download if it is a file of the hub."""
    if not isinstance(unit, Download):
        yield from documents_of(unit, rows=rows)
        return
    hub.fetch(unit.remote, unit.file)
    kept = Piece(name=unit.name, size_bytes=unit.size_bytes, fingerprint=unit.fingerprint, file=unit.file)
    try:
        yield from documents_of(kept, rows=rows)
    except ShardError as error:
        raise ShardError(f"{error} Or take a corrected copy as your own text.") from error


@dataclass(frozen=True, kw_only=True)
class HubText:
    """A text at one revision, as the parquet files of one folder with a column "text"."""

    title: str
    name: str
    """Name of the folder of its files, below DATA_DIR/downloads."""
    repository: str
    revision: str
    folder: str

    @property
    def less(self) -> str:
        """What to do if the file system has too little space."""
        return LESS

    @property
    def fingerprint(self) -> str:
        """The revision of the repository."""
        return f"{self.repository}@{self.revision}"

    def kept_in(self, data: Path) -> Path:
        """Return the folder in which its files are kept."""
        return data / "downloads" / self.name

    def units(self, data: Path) -> tuple[Download, ...]:
        """List its files on the hub.

        Raises:
            ShardError: the hub does not answer, or has no such file.
        """
        try:
            listed = hub.list_files("datasets", self.repository, self.revision, folder=self.folder)
        except FetchError as error:
            raise self._missing(error.reason, data) from error
        found = tuple(
            self.download(each, data)
            for each in sorted(listed, key=lambda each: each.path)
            if each.path.endswith(".parquet")
        )
        if not found:
            raise self._missing(f"{self.repository} has no parquet file in {self.folder}", data)
        return found

    def download(self, remote: hub.HubFile, data: Path, *, split: str = "") -> Download:
        """Return the unit of a file, with the split of all of its documents, "" to divide them."""
        file = self.kept_in(data) / Path(remote.path).relative_to(self.folder)
        scale = TEXT_BYTES_A_COMPRESSED_BYTE if file.suffix in COMPRESSED else 1
        return Download(
            name=remote.path,
            size_bytes=remote.size_bytes * scale,
            fingerprint=remote.sha256 or remote.git_sha1,
            split=split,
            remote=remote,
            file=file,
        )

    def downloaded(self, data: Path) -> str:
        """Return the progress of the download, to append to a progress line."""
        # A finished download gets another name meanwhile.
        size = sum(map(size_of, self.kept_in(data).rglob("*.*")))
        return f"; {size / 1e6:,.1f} MB downloaded"

    def _missing(self, reason: str, data: Path) -> ShardError:
        return ShardError(
            f"{self.title} cannot be had: {reason}. Have a way there (NAT, or a mirror by HF_ENDPOINT), "
            f"put your own text into {data / OWN} (CORPUS=raw), or train on this machine's: CORPUS=machine."
        )


def wikipedia() -> HubText:
    """Return the edition of Wikipedia that WIKIPEDIA_EDITION names.

    Raises:
        ShardError: it is not a date and a language.
    """
    edition = os.environ.get("WIKIPEDIA_EDITION") or WIKIPEDIA_EDITION
    if not re.fullmatch(r"\d{8}\.[a-z-]+", edition):
        raise ShardError(
            f'WIKIPEDIA_EDITION is "{edition}": give a date and a language of {REPOSITORY} on the Hugging '
            f"Face hub, such as {WIKIPEDIA_EDITION} or 20231101.simple."
        )
    name = f"{WIKIPEDIA}-{edition}"
    return HubText(title="Wikipedia", name=name, repository=REPOSITORY, revision=REVISION, folder=edition)
