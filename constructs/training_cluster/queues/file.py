"""Reader of the file of queues: Slurm partitions in addition to the one that the flags describe."""

import re
from collections.abc import Collection, Sequence
from typing import Annotated, Literal, Self, get_args

from pydantic import BeforeValidator, Field, ValidationError, field_validator, model_validator

from training_cluster.catalog.families import family_names, find_instance_type, load_base, load_family
from training_cluster.catalog.family import AWS_ID, QUEUE_NAME, RESERVATIONS, CapacityType, Strict
from training_cluster.catalog.instance_types import other_families, refused_family
from training_cluster.problems import did_you_mean
from training_cluster.queues.queue import (
    AUTO,
    OFF,
    OFFICIAL,
    ON,
    ComputeResource,
    NodeType,
    Queue,
    node_types,
)
from training_cluster.user_yaml import Listed, cached_until_changed, explained, read_file_of, unusable

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
        if self.efa and (without := [each.name for each in self.types() if not each.size.efa]):
            raise ValueError(f"efa: true, and {', '.join(without)} has none")
        return self

    def types(self) -> tuple[NodeType, ...]:
        """Return the instance types with the catalog's facts; a family's main size for its name alone."""
        names = self.instance_types or ((load_family(self.family).main_size,) if self.family else ())
        return node_types(names)


class ResourceEntry(NodesEntry):
    """One of several compute resources."""

    name: str = Field(pattern=QUEUE_NAME)
    reservation: str | None = Field(None, pattern=rf"^{RESERVATIONS}$")
    placement_group: OrOff | None = Field(None, pattern=_GROUP)


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
            if not each.types():
                where = f"compute resource {each.name}: " if isinstance(each, ResourceEntry) else ""
                raise ValueError(f"{where}family or instance_types is missing")
        names = [each.name for each in self.compute_resources]
        if len(set(names)) < len(names):
            raise ValueError("compute_resources: two items have the same name")
        return self

    def resources(self) -> tuple[tuple[str, NodesEntry], ...]:
        """Return the compute resources by name; a single one has the name of its first type."""
        if self.compute_resources:
            return tuple((each.name, each) for each in self.compute_resources)
        return ((self.types()[0].name.replace(".", "-"), self),)


_TAKES = {
    "family": "a family of docs/families.md, or any other of EC2's, such as g4dn",
    "instance_types": "instance types of EC2, such as [g6.12xlarge, g5.12xlarge]",
    "capacity": "ondemand, spot, reservation:cr-..., reservation:ARN of a resource group of reservations, "
    "capacity-block:cr-...",
    "reservation": "cr-..., or the ARN of a resource group of reservations",
    "image": "official, build, an AMI id (ami- and 8 or 17 hex digits)",
    "placement_group": "auto, on, off, the name of an existing group",
    "allocation_strategy": ", ".join(get_args(AllocationStrategy)),
    "nodes": "a whole number from 1 to 4096",
    "min_nodes": "a whole number from 0 to 4096",
    "root_gib": "a whole number of GiB from 40 to 16384",
    "subnet_ids": "ids of subnets of the cluster's VPC, one a zone",
    "partition": "settings of a partition in slurm.conf, such as {MaxTime: 1-00:00:00}",
    "exclusive": "true, false",
    "shared": "true, false",
    "efa": "true, false",
    "compute_resources": "a list of items with name, instance_types or family, nodes, min_nodes",
    "name": "a lower-case letter, then letters, digits and hyphens, 25 at most",
}
_PAGE = "docs/queues.md has all keys and examples"


@cached_until_changed
def read_queues(name: str) -> dict[str, QueueEntry]:
    """Read a file of queues: the queues by name, in the file's order.

    Args:
        name: path of the file, absolute or in the folder of cdk.json.

    Raises:
        ConfigurationError: no such file, no YAML, a key twice, an unknown key, or a wrong value.
    """
    otherwise = "the file has no queues: each is a name with its keys below it"
    content = read_file_of("queues", name, otherwise=otherwise, page=_PAGE)
    found, problems = {}, []
    for queue, keys in content.items():
        if not re.fullmatch(QUEUE_NAME, str(queue)):
            problems.append(f"{queue}: not allowed as a queue's name\n    allowed: {_TAKES['name']}")
        elif not isinstance(keys, dict):
            problems.append(f"{queue}: has no keys; instance_types or family is missing")
        else:
            try:
                found[str(queue)] = QueueEntry.model_validate(keys)
            except ValidationError as error:
                wrong = explained(error, takes=_TAKES, known=_keys_at)
                problems += [f"{'.'.join([str(queue), *place])}: {said}" for place, said in wrong]
    if problems:
        raise unusable(f"queues={name}", problems, page=_PAGE)
    return found


def _keys_at(place: Sequence[str]) -> Collection[str]:
    return (QueueEntry if len(place) == 1 else ResourceEntry).model_fields


def make_queue(name: str, entry: QueueEntry) -> Queue:
    """Make a queue of the user's entry."""
    kind, _, reservation = entry.capacity.partition(":")
    capacity: CapacityType = kind  # type: ignore[assignment]  # the pattern allows no other
    resources = tuple(
        ComputeResource(
            name=resource,
            types=each.types(),
            # All nodes of a Capacity Block always run.
            min_count=each.nodes if capacity == "capacity-block" else each.min_nodes,
            max_count=each.nodes,
            uses_efa=each.efa,
            **_own(each),
        )
        for resource, each in entry.resources()
    )
    first = resources[0].types[0].family
    return Queue(
        name=name,
        compute_resources=resources,
        capacity_type=capacity,
        reservation_id=reservation or None,
        allocation_strategy=entry.allocation_strategy,
        placement_group=entry.placement_group,
        image=entry.image,
        root_gib=entry.root_gib or first.compute_root_gib,
        subnet_ids=entry.subnet_ids,
        partition=entry.partition,
        is_exclusive=entry.exclusive,
        is_shared=entry.shared,
        tells_slurm_topology=len(resources[0].types) == 1 and first.slurm_topology is not None,
    )


def _own(entry: NodesEntry) -> dict[str, str | None]:
    """Return what one of several compute resources has instead of the queue's."""
    if not isinstance(entry, ResourceEntry):
        return {}
    group = None if entry.placement_group == AUTO else entry.placement_group
    return {"reservation_id": entry.reservation, "placement_group": group}


def flags_of_file(file: object, queue_name: object) -> dict[str, object]:
    """Return the flags that describe the same nodes as the file's queue of this name; none without one.

    Raises:
        ConfigurationError: the file cannot be used.
    """
    entry = read_queues(file).get(str(queue_name)) if file and isinstance(file, str) else None
    if not entry:
        return {}
    queue = make_queue("", entry)
    flags: dict[str, object] = {
        "instance_type": queue.first.name,
        "nodes": queue.nodes,
        "min_nodes": queue.static_nodes,
        "capacity": entry.capacity,
        "placement_group": entry.placement_group,
    }
    return flags | ({"image": entry.image} if "image" in entry.model_fields_set else {})


def cpu_queue(instance_type: str) -> Queue | None:
    """Make the queue of `cpu_queue`, for data preparation; None for an unknown instance type."""
    base = load_base().cpu_queue
    entry = QueueEntry.model_construct(
        instance_types=(instance_type,),
        nodes=base.nodes,
        root_gib=base.root_gib,
        # Data preparation runs on single nodes: placed close together they are only harder to get.
        placement_group=OFF,
    )
    return make_queue(base.name, entry) if entry.types() else None
