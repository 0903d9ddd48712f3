"""Network of a run's ranks: recorded before they join, reported after the first step. Without torch."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from trainkit import nccl
from trainkit.run import outcome
from trainkit.run.files import sync
from trainkit.run.run import Run, die
from trainkit.run.stacks import folder_of, node_name

LATE_S = 120.0
"""Seconds that a strict run waits for the lines of all nodes.

An NFS client (EFS) sends the lines of an open file within 35 s (Linux: dirty_expire_centisecs and
dirty_writeback_centisecs), or at a flush. Others see them when they open folder and file again.
"""
STRICT, DEBUG_FILE = "STRICT_NETWORK", "NCCL_DEBUG_FILE"
_NAMED = 4
_RUN: list[Run] = []


def record(run: Run) -> None:
    """Let NCCL write its choice of network into a file of this node; the user's own settings are kept.

    For ranks that use NCCL, before it starts, since it reads the variables once. The first rank of a node
    records.
    """
    _RUN[:] = [run]
    if run.local_rank or _nodes() == 1 or "NCCL_DEBUG" in os.environ:
        return
    folder = folder_of(run.run_dir, "network")
    folder.mkdir(parents=True, exist_ok=True)
    os.environ |= {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET"}
    os.environ[DEBUG_FILE] = str(folder / f"{node_name()}.log")


def report() -> None:
    """Flush this node's record; on the first rank, note and print the network of all nodes.

    Dies if STRICT_NETWORK is 1 and nodes with EFA send over TCP, or have not written what they take;
    job.slurm then does not start the training again.
    """
    if not _RUN:
        return
    (run,) = _RUN
    if (file := Path(os.environ.get(DEBUG_FILE, ""))).is_file():
        sync(file)
    if not run.is_first:
        return
    is_strict = os.environ.get(STRICT) == "1" and _nodes() > 1 and _cards() > 0
    last = time.monotonic() + LATE_S
    while True:
        network = nccl.read(folder_of(run.run_dir, "network"))
        complaint, silent = complaint_of(network), _nodes() - len(network.transports)
        if not (is_strict and silent > 0 and not complaint) or time.monotonic() >= last:
            break
        time.sleep(0.5)
    if network.transports:
        _note(run.run_dir, network, complaint)
    if is_strict and (complaint or silent > 0):
        found = f"NCCL has not written which network it takes on {silent} of {_nodes()} nodes."
        outcome.refused(run, complaint or found)
        die(f"{complaint or found} The run ends, since {STRICT} is 1.")
    if complaint:
        print(f"WARNING: {complaint} {STRICT}=1 ends such a run at its first step.", flush=True)
    elif network.transports:
        print(f"network between the nodes: {', '.join(network.names)}", flush=True)


def _note(run_dir: Path, network: nccl.Network, complaint: str) -> None:
    """Write the network of a run, and its fault if it has one, for the report."""
    content = {
        "transports": network.names,
        "providers": list(network.providers),
        "nics": list(network.nics),
        "hosts_on_tcp": network.on_tcp,
        "complaint": complaint,
    }
    (run_dir / nccl.FILE).write_text(json.dumps(content) + "\n", encoding="utf-8")


def complaint_of(network: nccl.Network) -> str:
    """Return the sentence about hosts that have EFA and send over TCP; empty if there are none."""
    hosts, cards = network.on_tcp, _cards()
    if not cards or not hosts:
        return ""
    named = ", ".join(hosts[:_NAMED]) + (f" and {len(hosts) - _NAMED} more" if len(hosts) > _NAMED else "")
    how = ", ".join(f"NET/{name}" for name in network.names if nccl.is_tcp(name))
    return (
        f"NCCL sends over TCP ({how}) on {named}, and these nodes have {cards} EFA card"
        f"{'s' if cards > 1 else ''} each: the training is many times slower than it could be. Submit "
        "nccl-tests, which names the cause; usual ones are a security group without a rule for itself and an "
        "aws-ofi-nccl plugin that is not found."
    )


def _nodes() -> int:
    return int(os.environ.get("NNODES", "1"))


def _cards() -> int:
    return int(os.environ.get("EFA_INTERFACES") or 0)
