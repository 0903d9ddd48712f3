"""Reads the nodes and jobs that run on the cluster."""

from dataclasses import dataclass
from typing import Any

from ops.account.head_node import find_head_node
from ops.account.session import ClientOf, every
from ops.usage import OpsError


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job that is running on the cluster."""

    id: str
    user: str
    time: str
    """Time since the start, in squeue's form."""
    nodes: int
    name: str


@dataclass(frozen=True, kw_only=True)
class Running:
    """Running nodes and jobs of a cluster."""

    nodes: int
    """Number of compute instances, including starting ones."""
    jobs: tuple[Job, ...] | None
    """Running jobs; None if unknown."""
    why_no_jobs: str = ""

    @property
    def is_busy(self) -> bool:
        """True if an update that needs the nodes stopped would find running ones."""
        return bool(self.nodes or self.jobs)


def read_running(cluster_name: str, client: ClientOf) -> Running:
    """Read nodes from EC2, and jobs from squeue on the head node. Raises botocore's errors."""
    nodes = _compute_nodes(cluster_name, client("ec2"))
    try:
        head_node = find_head_node(cluster_name, client)
        rows, _, _ = head_node.ask_slurm("squeue", "--states=RUNNING,COMPLETING,SUSPENDED")
    except OpsError as error:
        return Running(nodes=nodes, jobs=None, why_no_jobs=str(error).splitlines()[0])
    jobs = (
        Job(id=each["id"], user=each["user"], time=each["elapsed"], nodes=each["nodes"], name=each["name"])
        for each in rows
    )
    return Running(nodes=nodes, jobs=tuple(jobs))


def _compute_nodes(cluster_name: str, ec2: Any) -> int:
    filters = [
        {"Name": "tag:parallelcluster:cluster-name", "Values": [cluster_name]},
        {"Name": "tag:parallelcluster:node-type", "Values": ["Compute"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    return len([*every(ec2, "describe_instances", "Reservations", "Instances", Filters=filters)])
