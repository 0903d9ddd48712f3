"""CORPUS: the text that gpt2 trains on, as units for trainkit.data.prepare_tokens.

openwebtext: downloaded from the Hugging Face hub. machine: text that exists on any machine. raw: your own
files in DATA_DIR/raw.
"""

from __future__ import annotations

from pathlib import Path

from settings import CORPORA
from trainkit.data import machine_text
from trainkit.data.documents import OWN, PATTERNS, fingerprint_of, own_files, pieces_of
from trainkit.data.hub_text import HubText
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Unit

# The dataset of the walk-through, as parquet: 80 files of 303 MB, 8,013,769 documents.
OPENWEBTEXT = HubText(
    title="OpenWebText",
    name="openwebtext",
    repository="Skylion007/openwebtext",
    revision="79d93d786212f7344586290adb811d4ae6a1762c",
    folder="plain_text",
)

# nanoGPT uses 0.05 % of OpenWebText's documents for validation; small corpora need a larger share.
VALIDATION_EVERY = {"openwebtext": 2000, "machine": 20, OWN: 20}


def choose(wanted: str, *, data: Path) -> str:
    """Return the corpus: the wanted one, else your own files if there are any, else OpenWebText.

    Raises:
        ShardError: there is no such corpus.
    """
    if wanted and wanted not in CORPORA:
        raise ShardError(f'CORPUS is "{wanted}"; allowed: {", ".join(CORPORA)}.')
    return wanted or (OWN if own_files(data) else "openwebtext")


def fingerprint(corpus: str, *, data: Path) -> str | None:
    """Return a string that changes with the corpus; None without text. Reads no big file."""
    if corpus == "openwebtext":
        return OPENWEBTEXT.fingerprint
    if corpus == "machine":
        return machine_text.fingerprint()
    return fingerprint_of(own_files(data))


def units(corpus: str, *, data: Path) -> tuple[Unit, ...]:
    """List the units of a corpus in a fixed order.

    Raises:
        ShardError: there is no text, or the hub does not answer.
    """
    if corpus == "openwebtext":
        return OPENWEBTEXT.units(data)
    files = machine_text.gather(data / "downloads" / "machine") if corpus == "machine" else own_files(data)
    found = [piece for file in files for piece in pieces_of(file)]
    if not found:
        raise ShardError(
            f"there is no text for CORPUS={corpus}: put {PATTERNS} into {data / OWN}, and take "
            f"CORPUS={OWN}, or CORPUS=openwebtext."
        )
    return tuple(found)
