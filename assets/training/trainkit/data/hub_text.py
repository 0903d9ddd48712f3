"""Published texts: parquet files of the Hugging Face hub, each downloaded when it is needed, and kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainkit.data import hub
from trainkit.data.documents import OWN, Piece, documents_of
from trainkit.data.fetch import FetchError
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Unit


@dataclass(frozen=True, kw_only=True)
class Download(Unit):
    """A parquet file of the hub."""

    remote: hub.HubFile
    file: Path


def fetched_documents(unit: Download | Piece) -> Iterator[tuple[str, int]]:
    """Read the documents of a unit, after its download if it is a file of the hub."""
    if isinstance(unit, Piece):
        return documents_of(unit)
    hub.fetch(unit.remote, unit.file)
    return documents_of(
        Piece(name=unit.name, size_bytes=unit.size_bytes, fingerprint=unit.fingerprint, file=unit.file)
    )


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
            Download(
                name=each.path,
                size_bytes=each.size_bytes,
                fingerprint=each.sha256 or each.git_sha1,
                remote=each,
                file=self.kept_in(data) / Path(each.path).name,
            )
            for each in sorted(listed, key=lambda each: each.path)
            if each.path.endswith(".parquet")
        )
        if not found:
            raise self._missing(f"{self.repository} has no parquet file in {self.folder}", data)
        return found

    def downloaded(self, data: Path) -> str:
        """Return the progress of the download, to append to a progress line."""
        size = sum(file.stat().st_size for file in self.kept_in(data).glob("*.p*"))
        return f"; {size / 1e6:,.1f} MB downloaded"

    def _missing(self, reason: str, data: Path) -> ShardError:
        return ShardError(
            f"{self.title} cannot be had: {reason}. Have a way there (NAT, or a mirror by HF_ENDPOINT), "
            f"put your own text into {data / OWN}, or train on this machine's: CORPUS=machine."
        )
