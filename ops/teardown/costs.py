"""What costs a month that stays after the cluster went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.session import ClientOf
from ops.account.stacks import Stack
from ops.teardown.remaining import Ami, Efs, Lustre, Remaining
from training_cluster.catalog.families import load_base
from training_cluster.catalog.prices import Prices
from training_cluster.stack_names import NETWORK_STACK

_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Cost:
    """One thing that stays."""

    what: str
    usd_per_month: float | None
    """None: not known here; `note` says why."""
    note: str = ""


def read_costs(stacks: dict[str, Stack], remaining: Remaining, client: ClientOf) -> list[Cost]:
    """What stays, dearest first. Raises botocore's errors."""
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
        by_hour = prices.nat_gateway_hour.usd + prices.public_ipv4_hour.usd
        what = f"{nat.physical_id}  NAT gateway and its address"
        yield Cost(what=what, usd_per_month=by_hour * prices.hours_per_month)
    if ids := [each.physical_id for each in stack.of_type("AWS::EC2::VPCEndpoint")]:
        answer = ec2.describe_vpc_endpoints(VpcEndpointIds=ids)["VpcEndpoints"]
        zones = sum(
            len(each.get("SubnetIds", [])) for each in answer if each["VpcEndpointType"] == "Interface"
        )
        if zones:
            month = zones * prices.interface_endpoint_hour.usd * prices.hours_per_month
            yield Cost(what=f"{zones} interface endpoints", usd_per_month=month)


def _lustre(system: Lustre, prices: Prices) -> Cost:
    speed = f", {system.mbps_per_tib} MB/s a TiB" if system.mbps_per_tib else ""
    price = prices.lustre_gb_month(system.deployment_type, system.mbps_per_tib)
    return Cost(
        what=f"{system.id}  FSx for Lustre, {system.deployment_type}, {system.capacity_gib} GiB{speed}",
        usd_per_month=price.usd * system.capacity_gib if price else None,
        note="price not in the catalog" if price is None else "" if price.confirmed else "price unconfirmed",
    )


def _efs(system: Efs, prices: Prices) -> Cost:
    gib, mibps = system.size_bytes / _GIB, system.provisioned_mibps or 0
    speed = f" at {mibps:g} MiB/s" if mibps else ""
    return Cost(
        what=f"{system.id}  EFS, {gib:,.1f} GiB{speed}",
        usd_per_month=gib * prices.efs_gb_month.usd + mibps * prices.efs_mibps_month.usd,
    )


def _bucket(name: str, prices: Prices) -> Cost:
    note = f"{prices.s3_gb_month.usd} for each GB in it, old versions too"
    return Cost(what=f"{name}  bucket", usd_per_month=None, note=note)


def _accounting(remaining: Remaining, prices: Prices) -> Iterator[Cost]:
    for each in remaining.accounting:
        if each.type == "AWS::RDS::DBCluster":
            acu = load_base().accounting_database.min_acu
            month = acu * prices.aurora_acu_hour.usd * prices.hours_per_month
            what = f"{each.physical_id}  accounting database, {acu:g} ACU at least"
            yield Cost(what=what, usd_per_month=month)


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
