"""Python stacks of a run's ranks, in $RUN_DIR/stacks/<job>-<start>/<node>/rank-<n>.txt, written at SIGUSR1.

Run as a module on a node, with the folder of stacks, it sends the signal to the ranks of this node. Only the
standard library.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import re
import signal
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from trainkit.run.run import Run

_HEADER = re.compile(r"rank (\d+) on (\S+), process (\d+)$")
_INNERMOST = re.compile(r'^Current thread .*\n  File (".*", line \d+ in .*)$', re.MULTILINE)


@dataclass(frozen=True)
class Stacks:
    """File of one rank's stacks."""

    rank: int
    host: str
    pid: int
    innermost: str
    """Innermost frame of the main thread at the last signal; empty if the rank wrote none."""


def node_name() -> str:
    """Return Slurm's name of this node, or the host's outside of Slurm."""
    return os.environ.get("SLURMD_NODENAME") or socket.gethostname()


def folder_of(run_dir: Path, kind: str = "stacks") -> Path:
    """Return the folder of this start of the run for the files of its nodes, such as their stacks."""
    job, start = os.environ.get("SLURM_JOB_ID", "0"), os.environ.get("START_NUMBER") or "0"
    return run_dir / kind / f"{job}-{start}"


def register(run: Run) -> None:
    """Write the stacks of all threads of this rank at each SIGUSR1, without a debugger or permissions."""
    # So that each node reads the files of its own ranks only, 8 of perhaps 4,096.
    folder = folder_of(run.run_dir) / node_name()
    folder.mkdir(parents=True, exist_ok=True)
    # The file remains open until the process ends, since faulthandler keeps its descriptor.
    descriptor = os.open(folder / f"rank-{run.rank}.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    os.write(descriptor, f"rank {run.rank} on {node_name()}, process {os.getpid()}\n".encode())
    faulthandler.register(signal.SIGUSR1, file=descriptor, all_threads=True)


def read(folder: Path, node: str = "*") -> list[Stacks]:
    """Read the files of all ranks that registered, or of a node's, in the order of the ranks."""
    found = []
    for file in folder.glob(f"{node}/rank-*.txt"):
        text = file.read_text(encoding="utf-8", errors="replace")
        if header := _HEADER.match(text.partition("\n")[0]):
            frames = _INNERMOST.findall(text)
            found.append(
                Stacks(int(header[1]), header[2], int(header[3]), frames[-1].strip() if frames else "")
            )
    return sorted(found, key=lambda stacks: stacks.rank)


def signal_ranks(folder: Path) -> None:
    """Send SIGUSR1 to the ranks of this node."""
    for stacks in read(folder, node_name()):
        # A rank that has ended has no stack.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(stacks.pid, signal.SIGUSR1)


if __name__ == "__main__":
    signal_ranks(Path(sys.argv[1]))
