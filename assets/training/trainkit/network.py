"""Network of a run's ranks: recorded before they join, reported after the first step. Without torch."""

from __future__ import annotations

import os
import time
from pathlib import Path

from trainkit import nccl
from trainkit.run import outcome
from trainkit.run.files import sync
from trainkit.run.run import Run, die

LATE_S = 120.0
"""Seconds that a strict run waits for the lines of all nodes.

An NFS client (EFS) sends the lines of an open file within 35 s (Linux: dirty_expire_centisecs and
dirty_writeback_centisecs), or at a flush. Others see them when they open folder and file again.
"""

_RUN: list[Run] = []


def record(run: Run) -> None:
    """Record the network that NCCL uses; for ranks that use NCCL, before it starts."""
    _RUN[:] = [run]
    if run.local_rank == 0:
        nccl.record(run.run_dir, os.environ)


def report() -> None:
    """Flush this node's record; on the first rank, note and print the network of all nodes.

    Dies if STRICT_NETWORK is 1 and nodes with EFA send over TCP, or have not written what they take;
    job.slurm then does not start the training again.
    """
    if not _RUN:
        return
    (run,) = _RUN
    if (file := Path(os.environ.get(nccl.DEBUG_FILE, ""))).is_file():
        sync(file)
    if not run.is_first:
        return
    network = _read(run)
    if network.transports:
        nccl.note(run.run_dir, network, os.environ)
    if reason := nccl.refusal(network, os.environ):
        outcome.refused(run, reason)
        die(f"{reason} The run ends, since {nccl.STRICT} is 1.")
    if complaint := nccl.complaint(network, os.environ):
        print(f"WARNING: {complaint} {nccl.STRICT}=1 ends such a run at its first step.", flush=True)
    elif network.transports:
        print(f"network between the nodes: {', '.join(network.names)}", flush=True)


def _read(run: Run) -> nccl.Network:
    """Read the records; a strict run waits for the records of nodes whose lines are still to come."""
    last = time.monotonic() + LATE_S
    while True:
        network = nccl.read(run.run_dir, os.environ)
        if not nccl.waits(network, os.environ) or time.monotonic() >= last:
            return network
        time.sleep(0.5)
