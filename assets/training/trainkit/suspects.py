"""Which nodes a comparison of ranks suspects, and their marks for job.slurm. Only the standard library.

A mark is a file of the run. nodes.sh leaves a marked node out of the next start if enough others are left,
and heartbeat.py sends the notice. Nothing drains a node because of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

Answer = tuple[str, str, str]
"""A rank's node, and the checksums of its two computations; all ranks compute the same."""


def suspects(answers: Sequence[Answer]) -> tuple[list[str], str]:
    """Return the nodes that may be wrong, none if all ranks agree, and what they did.

    These are the nodes that differ from themselves, else from more than half of the ranks. If no answer has
    such a majority, as with two nodes, all of them may be wrong.
    """
    common, count = Counter(first for _, first, _ in answers).most_common(1)[0]
    if unsteady := {node for node, first, again in answers if first != again}:
        return sorted(unsteady), "got other bits when it computed again"
    if 2 * count > len(answers):
        other = {node for node, first, _ in answers if first != common}
        return sorted(other), f"got other bits than {count} of {len(answers)} ranks"
    return sorted(
        {node for node, _, _ in answers}
    ), "got different bits, and no majority tells which is wrong"


def mark_of(run_dir: Path, node: str) -> Path:
    """Return the file that marks a node for this job, and holds the reason."""
    return run_dir / f"suspect-{os.environ.get('SLURM_JOB_ID', '0')}.{node}"


def notify(run_dir: Path, told: set[Path] | None) -> set[Path]:
    """Return all marks; notify the user of those not in `told`, which is None at the start of a watch."""
    marks = set(run_dir.glob(mark_of(run_dir, "*").name))
    new = marks - told if told is not None and os.environ.get("NOTIFY") else set()
    for reason in {mark.read_text(encoding="utf-8").strip() for mark in new}:
        starter = [sys.executable, "-I", "-B", str(Path(__file__).parents[1] / "run_module.py")]
        subprocess.run([*starter, "trainkit.notify", "suspect node", reason], check=False)
    return marks
