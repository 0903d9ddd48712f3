"""Instances and volumes of a full cluster, by its final config: what price, advice and preflight count."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from training_cluster.cluster.nodes import Rendered, login_pools
from training_cluster.cluster.queues import capacity_of, types_of
from training_cluster.overrides.storage import ManagedStorage, managed_storage

RESERVED_ADDRESSES = 64
"""Number of addresses of the private subnet that are reserved for file systems and endpoints."""

PRIVATE_PREFIX = 17
"""Prefix length of a new VPC's private subnet, 10.0.128.0/17: compute nodes and file systems. EC2 reserves
five of its addresses."""
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
    interfaces: int = 1
    """Number of network interfaces of each: one on each network card.

    Several types have as many as the type with the fewest cards (pcluster 3.16.1:
    templates/queues_stack.py, add_network_interfaces; config/cluster_config.py, network_cards_list).
    """
    addresses: int = 1
    """Number of private addresses that each takes.

    With EFA only the first interface has one: ParallelCluster makes the others efa-only. Without EFA every
    interface has one.
    """


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
        types = types_of(resource)
        interfaces = min(each.size.network_cards for each in types)
        yield Nodes(
            queue=queue["Name"],
            types=tuple(each.name for each in types),
            kind=capacity_of(queue, resource),
            reservation=next(iter(target.values()), None),
            least=resource["MinCount"],
            most=resource["MaxCount"],
            subnets=frozenset(queue["Networking"]["SubnetIds"]),
            roots=_volumes(queue["ComputeSettings"]["LocalStorage"]["RootVolume"], resource["MaxCount"]),
            has_address=bool(queue["Networking"].get("AssignPublicIp")),
            interfaces=interfaces,
            addresses=1 if (resource.get("Efa") or {}).get("Enabled") else interfaces,
        )


def addresses_in(subnet_id: str, config: Rendered) -> int:
    """Return the private addresses that a full cluster takes in a subnet, with login nodes' load balancers.

    Nodes may start in any of their subnets.
    """
    here = [each for each in fleet(config) if subnet_id in each.subnets]
    balancers = sum(subnet_id in pool["Networking"]["SubnetIds"] for pool in login_pools(config))
    return balancers + sum(math.ceil(each.most * each.addresses / len(each.subnets)) for each in here)


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
