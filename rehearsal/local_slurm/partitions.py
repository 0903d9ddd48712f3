"""Partitions and node names, read from a ParallelCluster cluster config exactly as it names them (pure).

They convert a parsed YAML document to small frozen dataclasses.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rehearsal.local_slurm.errors import SlurmError

# Defaults of ParallelCluster 3.16.1 (config keys MinCount, MaxCount of a compute resource).
DEFAULT_MIN_COUNT = 0
DEFAULT_MAX_COUNT = 10


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
    *, cluster_config: Mapping[str, object], shapes: Mapping[str, NodeShape]
) -> tuple[Partition, ...]:
    """Read `Scheduling.SlurmQueues` of a cluster config.

    `shapes` has the shape of every instance type in the config.
    Raises SlurmError with the position in the config and the expected value.
    """
    scheduling = _mapping(cluster_config.get("Scheduling"), at="Scheduling")
    queues = _list(scheduling.get("SlurmQueues"), at="Scheduling.SlurmQueues")
    return tuple(
        _partition(queue, shapes=shapes, at=f"Scheduling.SlurmQueues[{i}]") for i, queue in enumerate(queues)
    )


def _partition(item: object, *, shapes: Mapping[str, NodeShape], at: str) -> Partition:
    queue = _mapping(item, at=at)
    name = _text(queue, "Name", at=at)
    resources = _list(queue.get("ComputeResources"), at=f"{at}.ComputeResources")
    node_sets = tuple(
        _node_set(resource, queue=name, shapes=shapes, at=f"{at}.ComputeResources[{i}]")
        for i, resource in enumerate(resources)
    )
    if not any(nodes.static + nodes.dynamic for nodes in node_sets):
        raise SlurmError(
            f"{at}: queue {name!r} has no node. Give a compute resource a MaxCount of 1 or more."
        )
    return Partition(name=name, node_sets=node_sets, settings=_settings(queue, at=at))


def _node_set(item: object, *, queue: str, shapes: Mapping[str, NodeShape], at: str) -> NodeSet:
    resource = _mapping(item, at=at)
    types = _instance_types(resource, at=at)
    missing = [name for name in types if name not in shapes]
    if missing:
        known = ", ".join(sorted(shapes)) or "none"
        raise SlurmError(f"{at}: no shape given for instance type {missing[0]!r}. Shapes given: {known}.")
    least = _count(resource, "MinCount", default=DEFAULT_MIN_COUNT, at=at)
    most = _count(resource, "MaxCount", default=DEFAULT_MAX_COUNT, at=at)
    if least > most:
        raise SlurmError(
            f"{at}: MinCount {least} is above MaxCount {most}. Raise MaxCount or lower MinCount."
        )
    return NodeSet(
        queue=queue,
        name=_text(resource, "Name", at=at),
        instance_types=types,
        static=least,
        dynamic=most - least,
        shape=_smallest([shapes[name] for name in types]),
        settings=_settings(resource, at=at),
    )


def _smallest(shapes: Iterable[NodeShape]) -> NodeShape:
    """Return the smallest shape, which ParallelCluster gives to Slurm for several instance types."""
    shapes = list(shapes)
    return NodeShape(
        vcpus=min(shape.vcpus for shape in shapes), memory_mib=min(shape.memory_mib for shape in shapes)
    )


def _instance_types(resource: Mapping[str, object], *, at: str) -> tuple[str, ...]:
    if "Instances" not in resource:
        return (_text(resource, "InstanceType", at=at),)
    instances = _list(resource["Instances"], at=f"{at}.Instances")
    return tuple(
        _text(_mapping(item, at=f"{at}.Instances[{i}]"), "InstanceType", at=f"{at}.Instances[{i}]")
        for i, item in enumerate(instances)
    )


def _settings(item: Mapping[str, object], *, at: str) -> Mapping[str, object]:
    return _mapping(item.get("CustomSlurmSettings", {}), at=f"{at}.CustomSlurmSettings")


def _mapping(value: object, *, at: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise SlurmError(f"{at}: keys and values are expected, not {value!r}. Is this a cluster config?")
    return value


def _list(value: object, *, at: str) -> list[object]:
    if not isinstance(value, list) or not value:
        raise SlurmError(f"{at}: a list with at least one entry is expected, not {value!r}.")
    return value


def _text(mapping: Mapping[str, object], key: str, *, at: str) -> str:
    value = mapping.get(key)
    if not isinstance(value, str) or not value:
        raise SlurmError(f"{at}.{key}: a name is expected, not {value!r}. Add `{key}: ...` there.")
    return value


def _count(mapping: Mapping[str, object], key: str, *, default: int, at: str) -> int:
    value = mapping.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise SlurmError(f"{at}.{key}: a whole number, 0 or more, is expected, not {value!r}.")
    return value
