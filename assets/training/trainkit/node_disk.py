"""Parts of node-local checkpoints: where they are, which step the nodes hold together, and who sends what.

Needs no torch; trainkit.local_checkpoints has the ranks' side.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from trainkit import label, sums
from trainkit.sums import LABEL


class Key(NamedTuple):
    """A local checkpoint: its step, and the start of the job that made it.

    Steps of two starts do not mix: the same step of another start may have other bits.
    """

    step: int
    start: int

    @property
    def name(self) -> str:
        """Name of its folder on each node."""
        return f"step-{self.step:06d}.{self.start}"


class Transfer(NamedTuple):
    """A part that one rank sends to another."""

    part: str
    source: int
    to: int


def job_folder() -> Path:
    """Make and return this job's folder on the node's local disks.

    Raises OSError if the node has none, or if the folder is another user's: a part may contain code.
    """
    scratch = Path(os.environ.get("SCRATCH") or "no local disk")
    # A rehearsal's nodes have none.
    if os.environ.get("TRAINING_REHEARSAL") == "1" and not scratch.is_dir():
        scratch = Path(tempfile.gettempdir())
    own = scratch / f"checkpoints-{os.getuid()}"
    try:
        own.mkdir(mode=0o700)
    except FileExistsError:
        found = own.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise PermissionError(f"{own} is of another user, or others may write to it") from None
    # The name of the node keeps those of a rehearsal apart, which share a disk.
    folder = own / f"{os.environ.get('SLURM_JOB_ID', '0')}-{os.environ.get('SLURMD_NODENAME', '')}"
    folder.mkdir(exist_ok=True)
    return folder


def parts_in(folder: Path) -> dict[Key, list[str]]:
    """List the parts of each checkpoint in a job's folder whose files have their sizes."""
    found: dict[Key, list[str]] = {}
    for each in sorted(folder.iterdir()):
        if name := re.fullmatch(r"step-(\d{6,})\.(\d+)", each.name):
            parts = sorted(part for part in each.iterdir() if not part.name.startswith("."))
            found[Key(*map(int, name.groups()))] = [p.name for p in parts if label.fault_of(p) is None]
    return found


def remove_others(folder: Path, kept: Collection[Key], *, start: int) -> None:
    """Remove all checkpoints from a job's folder but those to keep, and those of a later start."""
    names = {key.name for key in kept}
    for each in folder.iterdir():
        if each.name not in names and int(each.name.rpartition(".")[2]) <= start:
            shutil.rmtree(each)


def finish_part(partial: Path, final: Path) -> None:
    """Note sizes and sums of a part's files, and rename it. Nothing is flushed: a lost node has lost it."""
    noted = label.content_of(partial)
    (partial / LABEL).write_text(json.dumps(noted | {"sum": label.sum_of_label(noted)}), encoding="utf-8")
    partial.rename(final)


def is_unchanged(part: Path) -> bool:
    """Return True if a part's files have their sums; with VERIFY_DATA=no their sizes are enough."""
    if label.fault_of(part):
        return False
    wanted: dict[str, str] = label.noted(part)["sums"]
    if os.environ.get("VERIFY_DATA") == "no":
        return True
    try:
        found = sums.sums_of([part / name for name in wanted])
    except OSError:
        return False
    return all(found[part / name] == own for name, own in wanted.items())


def newest_of_all(
    held: Sequence[Mapping[Key, Collection[str]]], wanted: Collection[str], *, first: int, last: int
) -> Key | None:
    """Return the newest checkpoint of which the nodes together hold all parts; None if there is none.

    Args:
        held: the parts that each node, or each rank, holds.
        wanted: all parts.
        first: lowest step that is of use, that of the shared checkpoint.
        last: highest step that is of use, the last one in metrics.jsonl, whose later rows a lost node lost.
    """
    keys = {key for each in held for key in each if first <= key.step <= last}
    whole = [key for key in keys if set(wanted) <= {part for each in held for part in each.get(key, ())}]
    return max(whole, default=None)


def transfers(held: Sequence[Collection[str]], wanted: Sequence[str], *, ranks: int) -> list[Transfer]:
    """Return what has to be sent so that each node has the parts of its ranks.

    A rank sends to, and receives from, the rank of the same number on another node. All take the list in this
    order.

    Args:
        held: the parts that each node holds; together they are all.
        wanted: the part that each rank reads.
        ranks: number of ranks of a node.
    """
    found: list[Transfer] = []
    sent: Counter[int] = Counter()
    for node, own in enumerate(held):
        lacking = {
            part: rank for rank, part in enumerate(wanted) if rank // ranks == node and part not in own
        }
        for part, rank in lacking.items():
            source = min((n for n, each in enumerate(held) if part in each), key=lambda n: (sent[n], n))
            sent[source] += 1
            found.append(Transfer(part, source * ranks + rank % ranks, rank))
    return found
