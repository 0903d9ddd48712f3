"""CORPUS: the text to train on, as units for trainkit.data.prepare_tokens; a unit is a file.

raw: your own files in DATA_DIR/raw (*.txt, *.jsonl). machine: text that exists on any machine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainkit.data import machine_text
from trainkit.data.documents import blocks
from trainkit.data.shards import ShardError
from trainkit.data.tokenize_unit import Unit

OWN, MACHINE = "raw", "machine"
CORPORA = (OWN, MACHINE)
SUFFIXES = (".txt", ".jsonl")
# Long lines are read in parts of this size, so that memory stays flat.
LINE_CHARACTERS = 2**20


@dataclass(frozen=True, kw_only=True)
class File(Unit):
    """A file of text."""

    file: Path


def documents_of(unit: File) -> Iterator[tuple[str, int]]:
    """Read each JSON line's "text", or blocks of a plain text, with the bytes read for each."""
    if unit.file.suffix == ".jsonl":
        return json_lines(unit.file)
    return ((block, len(block.encode())) for block in blocks(lines(unit.file)))


def lines(file: Path) -> Iterator[str]:
    """Read the lines of a file with their ends, very long ones in parts; what is no UTF-8 becomes U+FFFD."""
    with file.open(encoding="utf-8", errors="replace") as opened:
        yield from iter(lambda: opened.readline(LINE_CHARACTERS), "")


def json_lines(file: Path) -> Iterator[tuple[str, int]]:
    """Read the "text" of each line's object.

    Raises:
        ShardError: a line has none.
    """
    with file.open("rb") as opened:
        for number, line in enumerate(opened, start=1):
            if not line.strip():
                continue
            try:
                text = json.loads(line)["text"]
            except (ValueError, KeyError, TypeError) as error:
                raise ShardError(f'{file}, line {number}: no JSON object with a "text" ({error}).') from error
            if not isinstance(text, str):
                raise ShardError(f'{file}, line {number}: its "text" is {text!r:.40}, and no string.')
            yield text, len(line)


def own_files(data: Path) -> list[Path]:
    """List the files of text in DATA_DIR/raw by name."""
    return sorted(file for file in (data / OWN).glob("*") if file.suffix in SUFFIXES)


def fingerprint(name: str, *, data: Path) -> str | None:
    """Return a sum that changes when the text would, reading none; None without text."""
    if name == MACHINE:
        return machine_text.fingerprint()
    made_of = [_stamp(file) for file in own_files(data)]
    return hashlib.sha256("\n".join(made_of).encode()).hexdigest() if made_of else None


def units(name: str, *, data: Path) -> tuple[File, ...]:
    """List the files of a corpus, in an order that does not change.

    Raises:
        ShardError: there is no text.
    """
    files = machine_text.gather(data / MACHINE) if name == MACHINE else own_files(data)
    if not files:
        raise ShardError(
            f"there is no text: put {' or '.join(f'*{suffix}' for suffix in SUFFIXES)} into {data / OWN}, or "
            f"train on the text of this machine: CORPUS={MACHINE}."
        )
    return tuple(
        File(name=file.name, size_bytes=file.stat().st_size, fingerprint=_stamp(file), file=file)
        for file in files
    )


def _stamp(file: Path) -> str:
    found = file.stat()
    return f"{file.name} {found.st_size} {found.st_mtime_ns}"
