"""Partitions and node names, read from a ParallelCluster cluster config exactly as it names them (pure).

They convert a parsed YAML document to small frozen dataclasses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

# Defaults of ParallelCluster 3.16.1 (config keys MinCount, MaxCount of a compute resource).
DEFAULT_MIN_COUNT = 0
DEFAULT_MAX_COUNT = 10
_SETTINGS = "CustomSlurmSettings"


@dataclass(frozen=True, kw_only=True)
class NodeShape:
    """The CPUs and the memory of one node."""

    vcpus: int
    memory_mib: int


@dataclass(frozen=True, kw_only=True)
class NodeSet:
    """The nodes of one compute resource: `static` always run, `dynamic` start when a job needs them."""

    queue: str
    name: str
    instance_types: tuple[str, ...]
    static: int
    dynamic: int
    shape: NodeShape
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of its lines in slurm.conf."""

    def names(self, kind: str) -> tuple[str, ...]:
        """Return the node names of one kind ("st" or "dy"), in order."""
        count = self.static if kind == "st" else self.dynamic
        return tuple(f"{self.queue}-{kind}-{self.name}-{n}" for n in range(1, count + 1))


@dataclass(frozen=True, kw_only=True)
class Partition:
    """One Slurm partition: one queue of the cluster config."""

    name: str
    node_sets: tuple[NodeSet, ...]
    settings: Mapping[str, object] = field(default_factory=dict)
    """Settings of its line in slurm.conf."""

    @property
    def static_names(self) -> tuple[str, ...]:
        """Names of the static nodes, which always run."""
        return tuple(name for nodes in self.node_sets for name in nodes.names("st"))

    @property
    def node_names(self) -> tuple[str, ...]:
        """Names of all nodes, static ones first within each compute resource."""
        return tuple(name for nodes in self.node_sets for kind in ("st", "dy") for name in nodes.names(kind))


def parse_partitions(
    *, cluster_config: Mapping[str, Any], shapes: Mapping[str, NodeShape]
) -> tuple[Partition, ...]:
    """Read `Scheduling.SlurmQueues` of a cluster config, which synth or the library has checked.

    `shapes` has the shape of every instance type in the config.
    """
    return tuple(
        Partition(
            name=queue["Name"],
            node_sets=tuple(_node_set(each, queue["Name"], shapes) for each in queue["ComputeResources"]),
            settings=queue.get(_SETTINGS, {}),
        )
        for queue in cluster_config["Scheduling"]["SlurmQueues"]
    )


def _node_set(resource: Mapping[str, Any], queue: str, shapes: Mapping[str, NodeShape]) -> NodeSet:
    types = tuple(each["InstanceType"] for each in resource.get("Instances", [resource]))
    least = resource.get("MinCount", DEFAULT_MIN_COUNT)
    own = [shapes[name] for name in types]
    return NodeSet(
        queue=queue,
        name=resource["Name"],
        instance_types=types,
        static=least,
        dynamic=resource.get("MaxCount", DEFAULT_MAX_COUNT) - least,
        # Of several instance types, ParallelCluster gives the smallest figures to Slurm.
        shape=NodeShape(
            vcpus=min(shape.vcpus for shape in own), memory_mib=min(shape.memory_mib for shape in own)
        ),
        settings=resource.get(_SETTINGS, {}),
    )
