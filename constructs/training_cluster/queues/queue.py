"""Model of a queue: a Slurm partition, with the facts of its instance types."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from training_cluster.catalog.families import family_names, find_instance_type, load_family
from training_cluster.catalog.family import (
    AWS_ID,
    QUEUE_NAME,
    RESERVATIONS,
    CapacityType,
    Family,
    Size,
    Strict,
)
from training_cluster.catalog.instance_types import other_families, refused_family
from training_cluster.problems import did_you_mean
from training_cluster.user_yaml import Listed

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


AllocationStrategy = Literal[
    "lowest-price",
    "capacity-optimized",
    "price-capacity-optimized",
    "prioritized",
    "capacity-optimized-prioritized",
]
CAPACITY = rf"^(ondemand|spot|reservation:{RESERVATIONS}|capacity-block:cr-{AWS_ID})$"
_GROUP = r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,254}$"


def _on_or_off(value: object) -> object:
    return {True: ON, False: OFF}[value] if isinstance(value, bool) else value


# YAML reads a bare `off` as false, and `on` as true.
OrOff = Annotated[str, BeforeValidator(_on_or_off)]


class NodesEntry(Strict):
    """Nodes of one list of instance types, as the user writes them."""

    family: str | None = None
    instance_types: Listed = ()
    nodes: int = Field(2, ge=1, le=4096)
    min_nodes: int = Field(0, ge=0, le=4096)
    efa: bool | None = None

    @field_validator("family")
    @classmethod
    def _known_family(cls, value: str | None) -> str | None:
        names = (*family_names(), *other_families())
        if value is not None and value not in names:
            raise ValueError(
                refused_family(value) or f'no such instance family "{value}".{did_you_mean(value, names)}'
            )
        return value

    @field_validator("instance_types")
    @classmethod
    def _known_types(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if find_instance_type(each) is None:
                family = each.partition(".")[0]
                known = family in (*family_names(), *other_families())
                sizes = sorted(load_family(family).sizes) if known else ()
                if refused := refused_family(family):
                    raise ValueError(refused)
                raise ValueError(
                    f'EC2 has no instance type "{each}".{did_you_mean(each, sizes)}'
                    + ("" if known else did_you_mean(family, (*family_names(), *other_families())))
                )
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.min_nodes > self.nodes:
            raise ValueError(f"min_nodes: {self.min_nodes} is more than nodes: {self.nodes}")
        if self.family and self.instance_types:
            raise ValueError("family and instance_types: give one of them")
        if self.efa and (without := [each.name for each in self.listed() if not each.size.efa]):
            raise ValueError(f"efa: true, and {', '.join(without)} has none")
        return self

    def listed(self) -> tuple[NodeType, ...]:
        """Return the instance types with the catalog's facts; a family's main size for its name alone."""
        names = self.instance_types or ((load_family(self.family).main_size,) if self.family else ())
        return node_types(names)


class ResourceEntry(NodesEntry):
    """One compute resource: nodes that EC2 launches from the same list of instance types."""

    name: str = Field(pattern=QUEUE_NAME)
    reservation: str | None = Field(None, pattern=rf"^{RESERVATIONS}$")
    placement_group: OrOff | None = Field(None, pattern=_GROUP)

    @property
    def types(self) -> tuple[NodeType, ...]:
        """One instance type, or several that are tried by the queue's allocation strategy."""
        return self.listed()

    @property
    def has_efa(self) -> bool:
        """True when its nodes communicate over EFA: all of its types can."""
        return self.efa is not False and all(each.size.efa for each in self.types)

    @property
    def own_placement_group(self) -> str | None:
        """ON, OFF, or a group's name; None for the queue's."""
        return None if self.placement_group == AUTO else self.placement_group


class QueueEntry(NodesEntry):
    """One queue, as the user writes it: with one compute resource, or a list of them."""

    compute_resources: tuple[ResourceEntry, ...] = ()
    capacity: str = Field("ondemand", pattern=CAPACITY)
    allocation_strategy: AllocationStrategy | None = None
    placement_group: OrOff = Field(AUTO, pattern=_GROUP)
    image: str = Field(OFFICIAL, pattern=rf"^(official|build|ami-{AWS_ID})$")
    root_gib: int | None = Field(None, ge=40, le=16384)
    subnet_ids: Listed = ()
    partition: dict[str, bool | str | int] = Field(default_factory=dict)
    exclusive: bool = False
    shared: bool = False

    @field_validator("subnet_ids")
    @classmethod
    def _subnets(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for each in value:
            if not re.fullmatch(rf"subnet-{AWS_ID}", each):
                raise ValueError(f'"{each}" is not an id of a subnet (subnet- and 8 or 17 hex digits)')
            if value.count(each) > 1:
                raise ValueError(f"{each} is there {value.count(each)} times")
        return value

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if self.exclusive and self.shared:
            raise ValueError("exclusive and shared: give one of them")
        return self

    @model_validator(mode="after")
    def _has_nodes(self) -> Self:
        own = {*NodesEntry.model_fields} & self.model_fields_set
        if self.compute_resources and own:
            raise ValueError(f"{min(own)}: belongs in the items of compute_resources")
        for each in self.compute_resources or (self,):
            if not each.listed():
                where = f"compute resource {each.name}: " if isinstance(each, ResourceEntry) else ""
                raise ValueError(f"{where}family or instance_types is missing")
        names = [each.name for each in self.compute_resources]
        if len(set(names)) < len(names):
            raise ValueError("compute_resources: two items have the same name")
        return self

    @property
    def resources(self) -> tuple[ResourceEntry, ...]:
        """Compute resources; a single one has the name of its first type."""
        if self.compute_resources:
            return self.compute_resources
        keys: dict[str, Any] = {key: getattr(self, key) for key in NodesEntry.model_fields}
        return (ResourceEntry.model_construct(name=self.listed()[0].name.replace(".", "-"), **keys),)


class Queue(QueueEntry):
    """One Slurm partition, with what follows from the user's entry or the flags."""

    name: str
    workloads: tuple[str, ...] = ()
    """Workloads whose Python environments new nodes have."""

    @property
    def capacity_type(self) -> CapacityType:
        """Purchase option: `capacity` without a reservation."""
        return self.capacity.partition(":")[0]  # type: ignore[return-value]  # the pattern allows no other

    @property
    def reservation_id(self) -> str | None:
        """Id of the reservation or Capacity Block (cr-...), or ARN of a resource group of reservations."""
        return self.capacity.partition(":")[2] or None

    @property
    def volume_gib(self) -> int:
        """Root volume of its nodes."""
        return self.root_gib or self.first.family.compute_root_gib

    @property
    def types(self) -> tuple[NodeType, ...]:
        """Instance types of all compute resources, each once."""
        found = {each.name: each for resource in self.resources for each in resource.types}
        return tuple(found.values())

    @property
    def first(self) -> NodeType:
        """Instance type that represents the queue: the first of the first compute resource."""
        return self.resources[0].types[0]

    @property
    def most_nodes(self) -> int:
        """Most nodes that run at a time."""
        return sum(each.nodes for each in self.resources)

    def least(self, resource: ResourceEntry) -> int:
        """Return the nodes of a compute resource that always run: all of a Capacity Block."""
        return resource.nodes if self.capacity_type == "capacity-block" else resource.min_nodes

    @property
    def tells_slurm_topology(self) -> bool:
        """True when slurm.conf has sockets and cores of its nodes."""
        return len(self.resources[0].types) == 1 and self.first.family.slurm_topology is not None

    @property
    def reservations(self) -> tuple[str, ...]:
        """Reservations and groups of reservations of all compute resources, each once."""
        found = (each.reservation or self.reservation_id for each in self.resources)
        return tuple(dict.fromkeys(each for each in found if each))

    @property
    def has_efa(self) -> bool:
        """True when any of its compute resources has EFA."""
        return any(each.has_efa for each in self.resources)

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
            each.efa or all(type_.size.network_cards > 1 for type_ in each.types) for each in self.resources
        )
        finds_capacity = len(self.types) == 1 and (self.capacity_type != "spot" or needs_efa)
        return self.has_efa and finds_capacity and not self.reservations


def make_queue(name: str, entry: QueueEntry, **changes: Any) -> Queue:
    """Make a queue of an entry, with other values of some keys."""
    return Queue.model_construct(name=name, **{**dict(entry), **changes})
