"""Calculates the monthly cost of the resources that remain without the cluster."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.session import ClientOf
from ops.account.stacks import Stack
from ops.teardown.remaining import Ami, Efs, Lustre, Remaining
from training_cluster.catalog.families import load_base
from training_cluster.catalog.monthly_costs import (
    aurora_month,
    efs_month,
    interface_endpoints_month,
    lustre_month,
    nat_gateway_month,
)
from training_cluster.catalog.prices import Prices
from training_cluster.stack_names import NETWORK_STACK

_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of one remaining resource."""

    what: str
    usd_per_month: float | None
    """Cost per month; None if it is unknown, with the reason in `note`."""
    note: str = ""


def read_costs(stacks: dict[str, Stack], remaining: Remaining, client: ClientOf) -> list[Cost]:
    """Return the remaining resources with their cost, the most expensive first. Raises botocore's errors."""
    prices = load_base().prices
    found = [
        *_network(stacks.get(NETWORK_STACK), client("ec2"), prices),
        *(_lustre(each, prices) for each in remaining.lustre),
        *(_efs(each, prices) for each in remaining.efs),
        *(_bucket(name, prices) for name in remaining.buckets),
        *_accounting(remaining, prices),
        *(_ami(each, prices) for each in remaining.images.amis),
    ]
    return sorted(found, key=lambda cost: -(cost.usd_per_month or 0))


def _network(stack: Stack | None, ec2: Any, prices: Prices) -> Iterator[Cost]:
    if stack is None:
        return
    for nat in stack.of_type("AWS::EC2::NatGateway"):
        what = f"{nat.physical_id}  NAT gateway and its address"
        yield Cost(what=what, usd_per_month=nat_gateway_month(prices).usd)
    if ids := [each.physical_id for each in stack.of_type("AWS::EC2::VPCEndpoint")]:
        answer = ec2.describe_vpc_endpoints(VpcEndpointIds=ids)["VpcEndpoints"]
        zones = sum(
            len(each.get("SubnetIds", [])) for each in answer if each["VpcEndpointType"] == "Interface"
        )
        if zones:
            month = interface_endpoints_month(prices, zones)
            yield Cost(what=f"{zones} interface endpoints", usd_per_month=month.usd)


def _lustre(system: Lustre, prices: Prices) -> Cost:
    speed = f", {system.mbps_per_tib} MB/s a TiB" if system.mbps_per_tib else ""
    month = lustre_month(
        prices, system.deployment_type, gib=system.capacity_gib, mbps_per_tib=system.mbps_per_tib
    )
    return Cost(
        what=f"{system.id}  FSx for Lustre, {system.deployment_type}, {system.capacity_gib} GiB{speed}",
        usd_per_month=month.usd if month else None,
        note="price not in the catalog" if month is None else "" if month.confirmed else "price unconfirmed",
    )


def _efs(system: Efs, prices: Prices) -> Cost:
    gib, mibps = system.size_bytes / _GIB, system.provisioned_mibps or 0
    speed = f" at {mibps:g} MiB/s" if mibps else ""
    return Cost(
        what=f"{system.id}  EFS, {gib:,.1f} GiB{speed}",
        usd_per_month=efs_month(prices, gib=gib, mibps=mibps).usd,
    )


def _bucket(name: str, prices: Prices) -> Cost:
    note = f"{prices.s3_gb_month.usd} for each GB in it, old versions too"
    return Cost(what=f"{name}  bucket", usd_per_month=None, note=note)


def _accounting(remaining: Remaining, prices: Prices) -> Iterator[Cost]:
    for each in remaining.accounting:
        if each.type == "AWS::RDS::DBCluster":
            acu = load_base().accounting_database.min_acu
            what = f"{each.physical_id}  accounting database, {acu:g} ACU at least"
            yield Cost(what=what, usd_per_month=aurora_month(prices, acu).usd)


def _ami(ami: Ami, prices: Prices) -> Cost:
    notes = (
        "at most: what was never written is not stored" if ami.is_whole_volume else "",
        f"in use: {', '.join(ami.users)}" if ami.users else "",
    )
    return Cost(
        what=f"{ami.id}  image {ami.name}, snapshots of {ami.gib:,.0f} GiB",
        usd_per_month=ami.gib * prices.snapshot_gb_month.usd,
        note="; ".join(filter(None, notes)),
    )
