"""Model of a queue: a Slurm partition, with the facts of its instance types."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from training_cluster.catalog.families import find_instance_type
from training_cluster.catalog.family import CapacityType, Family, Size

AUTO, ON, OFF = "auto", "on", "off"
"""Values of `placement_group` that are no group's name."""
OFFICIAL, BUILD = "official", "build"
"""Sources of an image that are no AMI's id."""
ONE_USER = "ExclusiveUser"
"""Setting of a partition in slurm.conf."""


@dataclass(frozen=True, kw_only=True)
class NodeType:
    """An instance type of a compute resource, with the catalog's facts."""

    name: str
    family: Family
    size: Size


def node_types(names: Iterable[str]) -> tuple[NodeType, ...]:
    """Return instance types with the catalog's facts, without those that EC2 does not have."""
    found = ((name, find_instance_type(name)) for name in names)
    return tuple(NodeType(name=name, family=each[0], size=each[1]) for name, each in found if each)


@dataclass(frozen=True, kw_only=True)
class ComputeResource:
    """Nodes of a queue that EC2 launches from the same list of instance types."""

    name: str
    types: tuple[NodeType, ...]
    """One, or several that are tried by the queue's allocation strategy."""
    min_count: int
    max_count: int
    uses_efa: bool | None = None
    """None to use EFA where all types have it."""
    reservation_id: str | None = None
    """Its own reservation or group of reservations; None for the queue's."""
    placement_group: str | None = None
    """Its own placement group: ON, OFF, or a name; None for the queue's."""

    @property
    def efa(self) -> bool:
        """True when its nodes communicate over EFA: all of its types can."""
        return self.uses_efa is not False and all(each.size.efa for each in self.types)


@dataclass(frozen=True, kw_only=True)
class Queue:
    """One Slurm partition."""

    name: str
    compute_resources: tuple[ComputeResource, ...]
    capacity_type: CapacityType
    reservation_id: str | None
    """Id of the reservation or Capacity Block (cr-...), or ARN of a resource group of reservations."""
    allocation_strategy: str | None = None
    """EC2's strategy for choosing among several instance types; None for ParallelCluster's default."""
    placement_group: str = AUTO
    """AUTO, ON, OFF, or the name of an existing group."""
    image: str = OFFICIAL
    """OFFICIAL, BUILD, or an AMI's id."""
    root_gib: int
    subnet_ids: tuple[str, ...] = ()
    """Existing subnets for the queue; empty for the network's private subnet."""
    partition: Mapping[str, str | int] = field(default_factory=dict)
    """Settings of the partition in slurm.conf."""
    is_exclusive: bool = False
    """True when a job has its nodes for itself."""
    is_shared: bool = False
    """True when jobs of several users run on a node."""
    workloads: tuple[str, ...] = ()
    """Workloads whose Python environments new nodes have."""
    tells_slurm_topology: bool = False

    @property
    def types(self) -> tuple[NodeType, ...]:
        """Instance types of all compute resources, each once."""
        found = {each.name: each for resource in self.compute_resources for each in resource.types}
        return tuple(found.values())

    @property
    def first(self) -> NodeType:
        """Instance type that represents the queue: the first of the first compute resource."""
        return self.compute_resources[0].types[0]

    @property
    def nodes(self) -> int:
        """Most nodes that run at a time."""
        return sum(each.max_count for each in self.compute_resources)

    @property
    def static_nodes(self) -> int:
        """Nodes that always run."""
        return sum(each.min_count for each in self.compute_resources)

    @property
    def reservations(self) -> tuple[str, ...]:
        """Reservations and groups of reservations of all compute resources, each once."""
        found = (each.reservation_id or self.reservation_id for each in self.compute_resources)
        return tuple(dict.fromkeys(each for each in found if each))

    @property
    def efa(self) -> bool:
        """True when any of its compute resources has EFA."""
        return any(each.efa for each in self.compute_resources)

    @property
    def image_recipe(self) -> str:
        """Recipe of its nodes' bootstrap steps."""
        return self.first.family.image_recipe

    @property
    def named_placement_group(self) -> str | None:
        """Name of an existing placement group, if one is given."""
        return None if self.placement_group in {AUTO, ON, OFF} else self.placement_group

    @property
    def wants_new_placement_group(self) -> bool:
        """True when the queue gets a new placement group: asked for, or by itself.

        A group narrows the places where EC2 looks for capacity. By itself only EFA nodes of one type get one,
        and on spot only those that need EFA: with several network cards, or where EFA is asked for.
        """
        if self.placement_group != AUTO:
            return self.placement_group == ON
        needs_efa = any(
            each.uses_efa or all(type_.size.network_cards > 1 for type_ in each.types)
            for each in self.compute_resources
        )
        finds_capacity = len(self.types) == 1 and (self.capacity_type != "spot" or needs_efa)
        return self.efa and finds_capacity and not self.reservations
