"""Partitions and nodes, as assets/bootstrap/metrics/slurm.py reads them. Pure."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from ops.account.head_node import Rows

STATES = ("allocated", "idle", "powering_up", "powering_down", "powered_down", "down")


@dataclass(frozen=True, kw_only=True)
class Partition:
    """A partition, with the number of its nodes in each of STATES."""

    name: str
    is_default: bool
    availability: str
    """State of the partition: up, or one in which it starts no jobs (down, drain, inact)."""
    nodes: Mapping[str, int]

    @property
    def size(self) -> int:
        """Number of nodes, including powered down ones."""
        return sum(self.nodes.values())


@dataclass(frozen=True, kw_only=True)
class UnavailableNodes:
    """Nodes that accept no jobs, with the reason."""

    names: str
    """Host list of the nodes, such as train-dy-p4d-[1-2]."""
    state: str
    since: str
    """Local time of the head node; empty if Slurm does not know it."""
    reason: str


def of_rows(rows: Rows) -> tuple[tuple[Partition, ...], tuple[UnavailableNodes, ...]]:
    """Return partitions, and the nodes that accept no jobs, of the head node's records."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row["partition"], Counter())[row["state"]] += row["number"]
    of = {row["partition"]: row for row in rows}
    partitions = tuple(
        Partition(
            name=name,
            is_default=of[name]["is_default"],
            availability=of[name]["availability"],
            nodes={state: found[state] for state in STATES},
        )
        for name, found in counts.items()
    )
    unavailable = {
        row["name"]: UnavailableNodes(
            names=row["name"],
            state=row["word"],
            since=row["out_at"],
            reason=row["reason"] or "Slurm gives no reason",
        )
        for row in rows
        if row["name"] and row["is_out"]
    }
    return partitions, tuple(unavailable.values())
