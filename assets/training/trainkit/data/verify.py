"""Verification of data on the shared file system, once for each state of a file.

prepare.py calls it, so one process of a job verifies the files before the ranks start, and the ranks rely on
that. FOLDER/verified.json has the size, the time of modification and the sha256 of every verified file. A
file that still has that size and time is not read again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainkit.data.shards import MANIFEST, Manifest, ShardError, sha256_of
from trainkit.run.files import write_whole

STAMP = "verified.json"
VERIFY_DATA = "VERIFY_DATA"
# sha256 releases Python's lock, so threads are enough.
MAX_THREADS = 16
NOTE_EVERY_S = 10.0
"""Seconds between two progress lines, and between two records of verified files."""


@dataclass(frozen=True)
class DataFile:
    """A file with its required size and checksum."""

    name: str
    size_bytes: int
    sha256: str


def files_of(manifest: Manifest) -> list[DataFile]:
    """List the files of token shards."""
    return [DataFile(shard.file, manifest.size_bytes(shard), shard.sha256) for shard in manifest.shards()]


def verify(
    folder: Path,
    files: Sequence[DataFile],
    *,
    mend: str = "delete it and submit again",
) -> None:
    """Compare the sizes of all files, and the content of files that changed since their last comparison.

    VERIFY_DATA=no skips the content. Interrupted work continues at the next call.

    Args:
        mend: remedy for a wrong file, for the message.

    Raises:
        ShardError: a file is missing or wrong, or VERIFY_DATA is neither yes nor no.
    """
    reads = os.environ.get(VERIFY_DATA) or "yes"
    if reads not in ("yes", "no"):
        raise ShardError(f'{VERIFY_DATA} is "{reads}"; allowed: yes, no.')
    known = _read_stamp(folder)
    states = {file.name: [*check_size(folder, file, mend=mend), file.sha256] for file in files}
    left = [file for file in files if known.get(file.name) != states[file.name]]
    if reads == "yes" and left:
        same = {name: state for name, state in states.items() if known.get(name) == state}
        _compare(folder, left, states, same, mend=mend)


def check_size(folder: Path, file: DataFile, *, mend: str) -> tuple[int, int]:
    """Return the size in bytes and the time of modification in nanoseconds.

    Raises:
        ShardError: the file is missing, or has another size.
    """
    path = folder / file.name
    try:
        found = path.stat()
    except FileNotFoundError:
        raise ShardError(f"{path} is missing; {mend}.") from None
    if found.st_size != file.size_bytes:
        raise ShardError(
            f"{path} is corrupt: it has {found.st_size:,} bytes, {MANIFEST} says {file.size_bytes:,}; {mend}."
        )
    return found.st_size, found.st_mtime_ns


def _compare(
    folder: Path,
    files: Sequence[DataFile],
    states: dict[str, list[Any]],
    verified: dict[str, list[Any]],
    *,
    mend: str,
) -> None:
    started = noted = time.monotonic()
    total, done = sum(file.size_bytes for file in files), 0
    with ThreadPoolExecutor(min(MAX_THREADS, len(os.sched_getaffinity(0)))) as threads:
        sums = {threads.submit(sha256_of, folder / file.name): file for file in files}
        try:
            for each in as_completed(sums):
                file = sums[each]
                if (found := each.result()) != file.sha256:
                    raise ShardError(
                        f"{folder / file.name} is corrupt: its sha256 is {found}, {MANIFEST} says "
                        f"{file.sha256}; {mend}."
                    )
                verified[file.name] = states[file.name]
                done += file.size_bytes
                if (now := time.monotonic()) - noted > NOTE_EVERY_S:
                    noted = now
                    print(f"data: {done / 1e6:,.1f} of {total / 1e6:,.1f} MB verified, {now - started:.0f} s")
                    _write_stamp(folder, verified)
        finally:
            threads.shutdown(cancel_futures=True)
    print(f"data: {total / 1e6:,.1f} MB in {len(files)} files verified, {time.monotonic() - started:.1f} s")
    _write_stamp(folder, verified)


def _read_stamp(folder: Path) -> dict[str, Any]:
    """Return the state of the files that are verified; none if the stamp is missing or damaged."""
    try:
        found = json.loads((folder / STAMP).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write_stamp(folder: Path, verified: dict[str, list[Any]]) -> None:
    try:
        write_whole(folder / STAMP, json.dumps(verified) + "\n")
    except PermissionError:
        # The data belongs to another user and is read-only, so each start reads it.
        print(f"data: {folder / STAMP} cannot be written, so the next start verifies the data again")
