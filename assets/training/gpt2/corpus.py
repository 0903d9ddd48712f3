"""CORPUS: the text that gpt2 trains on, as units for trainkit.data.prepare_tokens.

openwebtext: downloaded from the Hugging Face hub. machine: text that exists on any machine. raw: your own
files in DATA_DIR/raw.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hub
from trainkit.data import machine_text
from trainkit.data.documents import (
    OWN,
    PATTERNS,
    Piece,
    documents_of,
    fingerprint_of,
    own_files,
    pieces_of,
)
from trainkit.data.fetch import FetchError
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Unit

# The dataset of the walk-through, as parquet: 80 files of 303 MB, 8,013,769 documents.
OPENWEBTEXT = "Skylion007/openwebtext"
REVISION = "79d93d786212f7344586290adb811d4ae6a1762c"
PARQUET_FOLDER = "plain_text"

CORPORA = ("openwebtext", "machine", OWN)
# nanoGPT holds 0.05 % of OpenWebText's documents back for validation; small corpora need more of it.
VALIDATION_EVERY = {"openwebtext": 2000, "machine": 20, OWN: 20}


@dataclass(frozen=True, kw_only=True)
class Download(Unit):
    """A parquet file that is fetched when it is its turn, and kept."""

    remote: hub.HubFile
    file: Path


@dataclass(frozen=True)
class Reader:
    """A reader of any unit of gpt2."""

    def __call__(self, unit: Any) -> Iterator[tuple[str, int]]:
        """Download the unit if it is a download, then read its documents."""
        if isinstance(unit, Download):
            hub.fetch(unit.remote, unit.file)
            unit = Piece(
                name=unit.name, size_bytes=unit.size_bytes, fingerprint=unit.fingerprint, file=unit.file
            )
        return documents_of(unit)


def choose(wanted: str, *, data: Path) -> str:
    """Return the corpus: the wanted one, else your own files if there are any, else OpenWebText.

    Raises:
        ShardError: there is no such corpus.
    """
    if wanted and wanted not in CORPORA:
        raise ShardError(f'CORPUS is "{wanted}"; allowed: {", ".join(CORPORA)}.')
    return wanted or (OWN if own_files(data) else "openwebtext")


def fingerprint(corpus: str, *, data: Path) -> str | None:
    """Return a text that changes when the corpus would; None without text. Reads no big file."""
    if corpus == "openwebtext":
        return f"{OPENWEBTEXT}@{REVISION}"
    if corpus == "machine":
        return machine_text.fingerprint()
    return fingerprint_of(own_files(data))


def units(corpus: str, *, data: Path) -> tuple[Unit, ...]:
    """List the units of a corpus, in an order that does not change.

    Raises:
        ShardError: there is no text, or the hub does not answer.
    """
    if corpus == "openwebtext":
        return tuple(downloads(data))
    files = machine_text.gather(data / "downloads" / "machine") if corpus == "machine" else own_files(data)
    found = [piece for file in files for piece in pieces_of(file)]
    if not found:
        raise ShardError(
            f"there is no text for CORPUS={corpus}: put {PATTERNS} into {data / OWN}, and take "
            f"CORPUS={OWN}, or CORPUS=openwebtext."
        )
    return tuple(found)


def download_folder(data: Path) -> Path:
    """Return the folder in which OpenWebText's files are kept."""
    return data / "downloads" / "openwebtext"


def downloads(data: Path) -> Iterator[Download]:
    """List OpenWebText's files, as the hub has them."""
    try:
        listed = hub.list_files("datasets", OPENWEBTEXT, REVISION, folder=PARQUET_FOLDER)
    except FetchError as error:
        raise ShardError(
            f"OpenWebText cannot be had: {error.reason}. Have a way there (NAT, or a mirror by HF_ENDPOINT), "
            f"put your own text into {data / OWN}, or train on this machine's: CORPUS=machine."
        ) from error
    for each in sorted(listed, key=lambda each: each.path):
        if each.path.endswith(".parquet"):
            yield Download(
                name=each.path,
                size_bytes=each.size_bytes,
                fingerprint=each.sha256 or each.git_sha1,
                remote=each,
                file=download_folder(data) / Path(each.path).name,
            )
