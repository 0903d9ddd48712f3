"""Network of a run's ranks: recorded before they join, reported after the first step. Without torch."""

from __future__ import annotations

import os

from trainkit import nccl
from trainkit.run import outcome
from trainkit.run.run import Run, die

_RUN: list[Run] = []


def record(run: Run) -> None:
    """Record the network that NCCL uses; for ranks that use NCCL, before it starts."""
    _RUN[:] = [run]
    if run.local_rank == 0:
        nccl.record(run.run_dir, os.environ)


def report() -> None:
    """Note and print the recorded network on the first rank.

    Dies if STRICT_NETWORK is 1 and nodes with EFA send over TCP, or have not written what they take;
    job.slurm then does not start the training again.
    """
    if not _RUN or not _RUN[0].is_first:
        return
    (run,) = _RUN
    network = nccl.read(run.run_dir, os.environ)
    if network.transports:
        nccl.note(run.run_dir, network, os.environ)
    if reason := nccl.refusal(network, os.environ):
        outcome.refused(run, reason)
        die(f"{reason} The run ends, since {nccl.STRICT} is 1.")
    if complaint := nccl.complaint(network, os.environ):
        print(f"WARNING: {complaint} {nccl.STRICT}=1 ends such a run at its first step.", flush=True)
    elif network.transports:
        print(f"network between the nodes: {', '.join(network.names)}", flush=True)
