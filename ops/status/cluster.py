"""Reads the state of a deployed cluster: head node, compute fleet, partitions, jobs, storage.

Each part is read separately, so that one without an answer hides none of the others.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ops.account.clusters import describe_cluster
from ops.account.head_node import HeadNode, head_node_for_caller
from ops.account.session import ClientOf, unless
from ops.jobs.lookup import cluster_option, read_nodes
from ops.jobs.nodes import STATES, Partition, UnavailableNodes
from ops.parts import Parts
from ops.printable import aligned, printable
from ops.usage import OpsError

MOUNTS = ("/fsx", "/efs", "/home")
# Time limit for what asks a file system.
_FILL_S = 10
_GIB = 2**30
_NEARLY_FULL = 0.9
# Status of the fleet -> its meaning.
_FLEET = {
    "RUNNING": "nodes start when jobs need them",
    "STOPPED": "no node starts: jobs wait until the fleet is started",
    "PROTECTED": "too many nodes of a queue failed to start, so it starts none: fix the cause, then start it",
}
_START_FLEET = "pcluster update-compute-fleet --cluster-name {} --status START_REQUESTED"


@dataclass(frozen=True, kw_only=True)
class Fill:
    """Size and usage of a file system, in bytes."""

    mount: str
    size: int
    used: int

    @property
    def share(self) -> float:
        """Used share of the size, 0 to 1."""
        return self.used / self.size if self.size else 0.0


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """State of a cluster; parts without an answer are None or empty, and listed in `unanswered`."""

    cluster_name: str
    head_node_id: str
    head_node: str | None
    """State of the instance in EC2."""
    fleet: str | None
    """Status of the compute fleet in ParallelCluster: RUNNING, STOPPED, PROTECTED, STARTING, ..."""
    partitions: tuple[Partition, ...] | None
    unavailable: tuple[UnavailableNodes, ...]
    running_jobs: int | None
    waiting_jobs: int | None
    complaints: tuple[str, ...]
    """A line for each running job whose ranks have found something wrong with their network."""
    storage: tuple[Fill, ...]
    unanswered: tuple[str, ...]
    """A line for each part without an answer, with the reason."""


def read_deployed(cluster_name: str, client: ClientOf) -> ClusterState | None:
    """Read the state of a cluster whose stack exists; return None before its first head node.

    Raises OpsError without such a stack, and botocore's errors of CloudFormation.
    """
    head_node_id = describe_cluster(cluster_name, client).head_node_id
    return read_cluster_state(cluster_name, head_node_id, client) if head_node_id else None


def read_cluster_state(cluster_name: str, head_node_id: str, client: ClientOf) -> ClusterState:
    """Ask EC2, DynamoDB and the head node at the same time. Their errors are returned, and not raised."""
    head_node = head_node_for_caller(cluster_name, head_node_id, client)
    # Clients are created here because several threads may use boto3's clients, but not create them.
    clients = {name: client(name) for name in ("ec2", "dynamodb")}
    asked: dict[str, Callable[[], Any]] = {
        "head node": lambda: _instance_state(head_node_id, clients["ec2"]),
        "compute fleet": lambda: _fleet_status(cluster_name, clients["dynamodb"]),
        "partitions": lambda: read_nodes(head_node),
        "jobs": lambda: _jobs(head_node),
        "storage": lambda: _fills(head_node),
    }
    parts = Parts()
    with ThreadPoolExecutor(max_workers=len(asked)) as pool:
        found = dict(zip(asked, pool.map(parts.ask, asked, asked.values()), strict=True))
    partitions, unavailable = found["partitions"] or (None, ())
    running, waiting, complaints, unread = found["jobs"] or (None, None, (), ())
    fills, unmeasured = found["storage"] or ((), ())
    return ClusterState(
        cluster_name=cluster_name,
        head_node_id=head_node_id,
        head_node=found["head node"],
        fleet=found["compute fleet"],
        partitions=partitions,
        unavailable=unavailable,
        running_jobs=running,
        waiting_jobs=waiting,
        complaints=complaints,
        storage=fills,
        unanswered=(*parts.unanswered(asked), *unread, *unmeasured),
    )


def _instance_state(instance_id: str, ec2: Any) -> str:
    answer = unless(lambda: ec2.describe_instances(InstanceIds=[instance_id]), "InvalidInstanceID.NotFound")
    instances = [each for group in (answer or {}).get("Reservations", []) for each in group["Instances"]]
    if not instances:
        raise OpsError(f"EC2 has no instance {instance_id}")
    return str(instances[0]["State"]["Name"])


def _fleet_status(cluster_name: str, dynamodb: Any) -> str:
    """Read the status as ParallelCluster's library does (pcluster.models.compute_fleet_status_manager)."""
    table = f"parallelcluster-{cluster_name}"
    answer = unless(
        lambda: dynamodb.get_item(TableName=table, Key={"Id": {"S": "COMPUTE_FLEET"}}),
        "ResourceNotFoundException",
    )
    if answer is None:
        raise OpsError(f"DynamoDB has no table {table}")
    data = answer.get("Item", {}).get("Data", {}).get("M", {})
    if "S" not in data.get("status", {}):
        raise OpsError(f"DynamoDB's table {table} has no status of the cluster yet")
    return str(data["status"]["S"])


def _fills(head_node: HeadNode) -> tuple[tuple[Fill, ...], tuple[str, ...]]:
    """Measure every file system in one command; return a line for each without an answer, too."""
    fills, unmeasured = list[Fill](), list[str]()
    answer = head_node.run_script("measure-storage.sh", str(_FILL_S), *MOUNTS, reads_only=True)
    for line in answer.splitlines():
        mount, _, said = line.partition(": ")
        if found := re.fullmatch(r"\s*([0-9]+)\s+([0-9]+)\s*", said):
            fills.append(Fill(mount=mount, size=int(found[1]), used=int(found[2])))
        else:
            unmeasured.append(line)
    return tuple(fills), tuple(unmeasured)


def _jobs(head_node: HeadNode) -> tuple[int, int, tuple[str, ...], tuple[str, ...]]:
    """Return the numbers of running and of waiting jobs, and what is wrong with the network of running ones.

    Completing and configuring jobs count as running. The last value is a line for what could not be read.
    """
    answer = head_node.run_script("list-jobs.sh", str(_FILL_S), MOUNTS[0], reads_only=True)
    lines = answer.splitlines()
    sentences = [line for line in lines if ": " in line]
    complaints = tuple(printable(line) for line in sentences if line[0].isdecimal())
    unread = tuple(line for line in sentences if not line[0].isdecimal())
    waiting = sum(line.strip() == "PENDING" for line in lines)
    return len(lines) - len(sentences) - waiting, waiting, complaints, unread


def render_cluster_state(state: ClusterState) -> Iterator[str]:
    """Yield the lines for a terminal."""
    if state.head_node:
        yield f"head node      {state.head_node}, {state.head_node_id}"
    if state.fleet:
        meaning = _FLEET.get(state.fleet)
        yield f"compute fleet  {state.fleet}{f': {meaning}' if meaning else ''}"
        if state.fleet in ("STOPPED", "PROTECTED"):
            yield f"               {_START_FLEET.format(state.cluster_name)}"
    if state.running_jobs is not None:
        why = (
            f" (trainctl jobs{cluster_option(state.cluster_name)} shows why they wait)"
            if state.waiting_jobs
            else ""
        )
        yield f"jobs           {state.running_jobs} running, {state.waiting_jobs} waiting{why}"
    yield from (f"  WARNING job {line}" for line in state.complaints)
    for fill in state.storage:
        yield f"{fill.mount:13}  {_fill(fill)}"
    if state.partitions is not None:
        yield ""
        yield from _render_partitions(state.partitions)
    for nodes in state.unavailable:
        since = f" since {nodes.since.replace('T', ' ')}" if nodes.since else ""
        yield f"  {nodes.names} {nodes.state}{since}: {nodes.reason}"
    if state.unanswered:
        yield ""
        yield from (f"not known: {line}" for line in state.unanswered)


def _render_partitions(partitions: Iterable[Partition]) -> Iterator[str]:
    rows = [["partition", *(state.replace("_", " ") for state in STATES), ""]]
    for each in partitions:
        closed = "" if each.availability == "up" else f"{each.availability}: starts no jobs"
        rows.append([each.name, *(str(each.nodes[state]) for state in STATES), closed])
    yield from aligned(rows)


def _fill(fill: Fill) -> str:
    full = "  nearly full" if fill.share >= _NEARLY_FULL else ""
    return f"{fill.share:.0%} of {fill.size / _GIB:,.0f} GiB used{full}"
