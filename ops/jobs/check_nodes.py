"""Sweeps the nodes of a partition by a job of nccl-tests, and drains those that it names."""

import json
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from ops.account.head_node import CommandError, HeadNode
from ops.jobs.lookup import cluster_option, find_partition, read_facts
from ops.jobs.nodes import Partition
from ops.jobs.request import RUN_NAME, JobRequest
from ops.jobs.submit import Submitted, submit
from ops.printable import printable
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base
from training_cluster.problems import did_you_mean

WORKLOAD = "nccl-tests"
_DRAIN = "drain-node.sh"
_LIMIT_MIN, _WAIT_MIN = 60, 60
# A comma inside brackets belongs to one name: gpu-dy-p4d-[1-2,4].
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(?:\[[0-9,-]+\])?")


@dataclass(frozen=True, kw_only=True)
class SickNode:
    """A node that a sweep names."""

    node: str
    reason: str
    """Reason to drain it; empty if the sweep could not decide."""
    note: str
    """Question about the node that the sweep left open."""


@dataclass(frozen=True, kw_only=True)
class Swept:
    """Result of a sweep."""

    job_id: str
    run: str
    nodes: int
    sick: tuple[SickNode, ...]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A sweep that Slurm accepted."""

    submitted: Submitted
    run: str
    nodes: tuple[str, ...]


def check_names(names: str) -> None:
    """Refuse what cannot be a host list of Slurm. Raises UsageError."""
    if not re.fullmatch(rf"{_NAME.pattern}(?:,{_NAME.pattern})*", names):
        raise UsageError(
            f'"{names}" is not a list of nodes.\n  allowed: names of sinfo --Node, such as gpu-dy-p4d-[1-8]'
        )


def start_sweep(names: str | None, partition_name: str | None, head_node: HeadNode) -> Sweep:
    """Submit a sweep of these nodes, by default of the partition's nodes that run and are idle.

    Args:
        names: host list of Slurm that `check_names` accepted, such as gpu-dy-p4d-[1-8].
        partition_name: default: Slurm's default partition.

    Raises:
        OpsError: no such partition or nodes, or Slurm refused the job.
        botocore's errors.
    """
    partition = find_partition(partition_name, head_node)
    if read_facts(partition.name, head_node).get("ACCELERATOR_KIND") == "neuron":
        raise OpsError(
            f"The nodes of {partition.name} have Neuron devices, which NCCL cannot measure.\n"
            "  type:    nccom-test of the Neuron tools, on a node"
        )
    nodes = _idle(partition, head_node) if names is None else _named(names, head_node)
    run = f"check-nodes-{uuid.uuid4().hex[:8]}"
    request = JobRequest(
        workload=WORKLOAD,
        nodes=len(nodes),
        partition=partition.name,
        node_list=nodes,
        settings={"LAUNCHER": "sweep", "MAX_RESTARTS": "0", RUN_NAME: run},
        time_limit=str(_LIMIT_MIN),
        # A node that its own checks drain at the start lets the job wait for its replacement.
        deadline=f"now+{_LIMIT_MIN + _WAIT_MIN}minutes",
    )
    return Sweep(submitted=submit(request, head_node), run=run, nodes=nodes)


def read_sweep(sweep: Sweep, head_node: HeadNode) -> Swept:
    """Read the result of a sweep whose job has ended. Raises OpsError and botocore's errors."""
    path = f"{load_base().shared_dir}/runs/{WORKLOAD}/{sweep.run}/sweep.json"
    job_id = sweep.submitted.job_id
    try:
        found = json.loads(head_node.run("cat", path, reads_only=True))
    except (CommandError, json.JSONDecodeError):
        where = cluster_option(head_node.cluster_name)
        raise OpsError(
            f"Job {job_id} ended without a verdict on its nodes.\n"
            f"  type:    trainctl logs {job_id}{where}, or trainctl diagnose{where}"
        ) from None
    sick = tuple(
        SickNode(node=each["node"], reason=printable(each["reason"]), note=printable(each["note"]))
        for each in found["nodes"]
    )
    return Swept(job_id=job_id, run=sweep.run, nodes=int(found["swept"]), sick=sick)


def drain(node: SickNode, head_node: HeadNode) -> str:
    """Drain a node with the reason of the sweep; return what was done. Raises OpsError."""
    return head_node.run_script(_DRAIN, node.node, f"training-cluster: check-nodes, {node.reason}").strip()


def _idle(partition: Partition, head_node: HeadNode) -> tuple[str, ...]:
    # A sign after the state, as in idle~, says that the node is off, or starts or ends.
    said = head_node.run(
        *("sinfo", "--noheader", "--Node", f"--partition={partition.name}", "--format=%N|%T"), reads_only=True
    )
    states = [line.strip().split("|") for line in said.splitlines() if "|" in line]
    idle = tuple(name for name, state in states if state == "idle")
    if not idle:
        raise OpsError(
            f"No node of {partition.name} is running and idle, so there is nothing to measure.\n"
            "  type:    trainctl check-nodes NODES, such as "
            f"{states[0][0] if states else 'gpu-dy-p4d-1'}: it waits for them, and starts those that are off"
        )
    return idle


def _named(names: str, head_node: HeadNode) -> tuple[str, ...]:
    nodes = tuple(head_node.run("scontrol", "show", "hostnames", names, reads_only=True).split())
    known = set(
        head_node.run("sinfo", "--all", "--noheader", "--Node", "--format=%N", reads_only=True).split()
    )
    if unknown := [each for each in nodes if each not in known]:
        raise OpsError(
            f"{head_node.cluster_name} has no node {unknown[0]}.{did_you_mean(unknown[0], sorted(known))}\n"
            "  allowed: names of sinfo --Node, such as gpu-dy-p4d-[1-8]"
        )
    return tuple(dict.fromkeys(nodes))


def sentences(swept: Swept) -> Sequence[str]:
    """Return the result in lines for people."""
    if not swept.sick:
        return [f"All {swept.nodes} node(s) are good."]
    lines = [
        f"{each.node}: {f'BAD, {each.reason}' if each.reason else f'undecided, {each.note}'}"
        for each in swept.sick
    ]
    return [*lines, f"{swept.nodes - len(swept.sick)} of {swept.nodes} node(s) are good."]
