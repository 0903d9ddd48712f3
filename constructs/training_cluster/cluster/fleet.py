"""Instances and volumes of a full cluster, by its final config: what price, advice and preflight count."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from training_cluster.cluster.nodes import Rendered, login_pools
from training_cluster.cluster.queues import capacity_of, types_of
from training_cluster.overrides.storage import ManagedStorage, managed_storage

GP3 = "gp3"
"""ParallelCluster's default type of volumes."""
_EBS_GIB = 40
"""ParallelCluster's EBS_VOLUME_SIZE_DEFAULT (pcluster/constants.py, 3.16.1)."""
_INCLUDED = {"Iops": 3000, "Throughput": 125}
"""IOPS and MiB/s in the price of each GiB of gp3 (EBS pricing)."""


@dataclass(frozen=True, kw_only=True)
class Volumes:
    """EBS volumes of one size and type."""

    count: int
    gib: int
    """Size of one."""
    type: str
    more: str
    """Properties that a price by the GiB of gp3 leaves out; "" if there are none."""


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """Equal instances: the head node, a pool of login nodes, or the nodes of a compute resource."""

    types: tuple[str, ...]
    """Instance types, of which each has as many vCPUs."""
    least: int
    most: int
    subnets: frozenset[str]
    roots: Volumes | None = None
    """Root volumes of all; None where the image decides their size."""
    has_address: bool = False
    """True if each has a public address, whatever its subnet gives."""
    queue: str = ""
    """Name of the queue of compute nodes."""
    kind: str = "ondemand"
    """Purchase option in the flags' words."""
    reservation: str | None = None
    """Id of the reservation, or ARN of a group of them."""


def fleet(config: Rendered) -> Iterator[Nodes]:
    """Yield the nodes of a cluster: the head node, login nodes, then each compute resource."""
    head = config["HeadNode"]
    yield Nodes(
        types=(head["InstanceType"],),
        least=1,
        most=1,
        subnets=frozenset([head["Networking"]["SubnetId"]]),
        roots=_volumes(head["LocalStorage"]["RootVolume"], 1),
        has_address=bool(head["Networking"].get("ElasticIp")),
    )
    for pool in login_pools(config):
        count, subnets = pool.get("Count", 0), frozenset(pool["Networking"]["SubnetIds"])
        yield Nodes(types=(pool["InstanceType"],), least=count, most=count, subnets=subnets)
    yield from compute_nodes(config)


def compute_nodes(config: Rendered) -> Iterator[Nodes]:
    """Yield the nodes of each compute resource, the flags' queue first."""
    queues = config["Scheduling"]["SlurmQueues"]
    for queue, resource in ((of, each) for of in queues for each in of["ComputeResources"]):
        target = resource.get("CapacityReservationTarget") or queue.get("CapacityReservationTarget") or {}
        yield Nodes(
            queue=queue["Name"],
            types=tuple(each.name for each in types_of(resource)),
            kind=capacity_of(queue, resource),
            reservation=next(iter(target.values()), None),
            least=resource["MinCount"],
            most=resource["MaxCount"],
            subnets=frozenset(queue["Networking"]["SubnetIds"]),
            roots=_volumes(queue["ComputeSettings"]["LocalStorage"]["RootVolume"], resource["MaxCount"]),
            has_address=bool(queue["Networking"].get("AssignPublicIp")),
        )


def volumes(config: Rendered) -> Iterator[Volumes]:
    """Yield the volumes of a full cluster, but those of login nodes."""
    yield from (each.roots for each in fleet(config) if each.roots)
    yield from (volumes_of(each) for each in managed_storage(config) if each.kind == "Ebs")


def volumes_of(storage: ManagedStorage) -> Volumes:
    """Return the volumes of an item of SharedStorage that ParallelCluster makes of EBS."""
    raid = storage.settings.get("Raid") or {}
    return _volumes(storage.settings, raid.get("NumberOfVolumes", 2) if raid else 1)


def _volumes(settings: Mapping[str, Any], count: int) -> Volumes:
    type_ = settings.get("VolumeType", GP3)
    beyond = [key for key, included in _INCLUDED.items() if settings.get(key, 0) > included]
    more = f"without {', '.join(beyond)} of the volumes" if beyond else ""
    return Volumes(
        count=count,
        gib=settings.get("Size", _EBS_GIB),
        type=type_,
        more=more if type_ == GP3 else f"without the {type_} volumes",
    )
