"""Calculates the monthly cost of the resources that remain without the cluster."""

from collections.abc import Iterator
from typing import Any

from ops.account.session import ClientOf
from ops.account.stacks import Stack
from ops.teardown.remaining import Ami, Efs, Lustre, Remaining
from training_cluster.catalog import charges
from training_cluster.catalog.charges import Charge
from training_cluster.catalog.families import load_base
from training_cluster.catalog.prices import Prices
from training_cluster.stack_names import NETWORK_STACK

_GIB = 2**30


def read_costs(stacks: dict[str, Stack], remaining: Remaining, client: ClientOf) -> tuple[Charge, ...]:
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
    return charges.dearest_first(found)


def _network(stack: Stack | None, ec2: Any, prices: Prices) -> Iterator[Charge]:
    if stack is None:
        return
    for nat in stack.of_type("AWS::EC2::NatGateway"):
        yield charges.nat_gateway(prices, f"{nat.physical_id}  NAT gateway and its address")
    if ids := [each.physical_id for each in stack.of_type("AWS::EC2::VPCEndpoint")]:
        answer = ec2.describe_vpc_endpoints(VpcEndpointIds=ids)["VpcEndpoints"]
        zones = sum(
            len(each.get("SubnetIds", [])) for each in answer if each["VpcEndpointType"] == "Interface"
        )
        if zones:
            yield charges.interface_endpoints(prices, zones)


def _lustre(system: Lustre, prices: Prices) -> Charge:
    speed = f", {system.mbps_per_tib} MB/s a TiB" if system.mbps_per_tib else ""
    what = f"{system.id}  FSx for Lustre, {system.deployment_type}, {system.capacity_gib} GiB{speed}"
    return charges.lustre(
        what, prices, system.deployment_type, gib=system.capacity_gib, mbps_per_tib=system.mbps_per_tib
    )


def _efs(system: Efs, prices: Prices) -> Charge:
    gib, mibps = system.size_bytes / _GIB, system.provisioned_mibps or 0
    speed = f" at {mibps:g} MiB/s" if mibps else ""
    return charges.efs(f"{system.id}  EFS, {gib:,.1f} GiB{speed}", prices, gib=gib, mibps=mibps)


def _bucket(name: str, prices: Prices) -> Charge:
    note = f"{prices.s3_gb_month.usd} for each GB in it, old versions too"
    return Charge(what=f"{name}  bucket", usd_per_month=None, note=note)


def _accounting(remaining: Remaining, prices: Prices) -> Iterator[Charge]:
    for each in remaining.accounting:
        if each.type == "AWS::RDS::DBCluster":
            acu = load_base().accounting_database.min_acu
            what = f"{each.physical_id}  accounting database, {acu:g} ACU at least"
            yield charges.aurora(what, prices, acu)


def _ami(ami: Ami, prices: Prices) -> Charge:
    notes = (
        "at most: what was never written is not stored" if ami.is_whole_volume else "",
        f"in use: {', '.join(ami.users)}" if ami.users else "",
    )
    return Charge(
        what=f"{ami.id}  image {ami.name}, snapshots of {ami.gib:,.0f} GiB",
        usd_per_month=ami.gib * prices.snapshot_gb_month.usd,
        prices=(prices.snapshot_gb_month,),
        note="; ".join(filter(None, notes)),
    )
