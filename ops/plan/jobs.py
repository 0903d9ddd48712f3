"""Reads the nodes and jobs that run on the cluster."""

from dataclasses import dataclass
from typing import Any

from ops.account.head_node import find_head_node
from ops.account.session import ClientOf
from ops.printable import printable
from ops.usage import OpsError

_FORMAT = "%i|%u|%M|%D|%j"
_FIELDS = _FORMAT.count("|") + 1


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
        said = find_head_node(cluster_name, client).run(
            "squeue", "--noheader", "--states=RUNNING,COMPLETING,SUSPENDED", f"--format={_FORMAT}"
        )
    except OpsError as error:
        return Running(nodes=nodes, jobs=None, why_no_jobs=str(error).splitlines()[0])
    return Running(nodes=nodes, jobs=tuple(parse_jobs(said)))


def parse_jobs(text: str) -> list[Job]:
    """Parse squeue's lines, without a cut last line and without the remains of a name with a line end."""
    found = []
    for line in text.split("\n"):
        fields = [printable(field) for field in line.strip().split("|", _FIELDS - 1)]
        if len(fields) == _FIELDS and fields[3].isdigit():
            id_, user, time, nodes, name = fields
            found.append(Job(id=id_, user=user, time=time, nodes=int(nodes), name=name))
    return found


def _compute_nodes(cluster_name: str, ec2: Any) -> int:
    filters = [
        {"Name": "tag:parallelcluster:cluster-name", "Values": [cluster_name]},
        {"Name": "tag:parallelcluster:node-type", "Values": ["Compute"]},
        {"Name": "instance-state-name", "Values": ["pending", "running"]},
    ]
    pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
    return sum(len(each["Instances"]) for page in pages for each in page["Reservations"])
