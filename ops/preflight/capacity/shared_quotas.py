"""Checks the quotas for resources that all clusters share: the network and the Lustre file system."""

from collections.abc import Iterator
from typing import Any

from ops.account.session import ClientOf, every
from ops.preflight.capacity.service_quotas import judge_quota
from ops.preflight.capacity.zone import Chooser
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding
from training_cluster.catalog.families import load_base
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import NETWORK_STACK, STORAGE_STACK

_TYPES = {"persistent2": ("PERSISTENT_2",), "scratch2": ("SCRATCH_1", "SCRATCH_2")}
_EXISTING = ["pending", "available", "deleting"]


def check_vpc_quota(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check the quota for one more VPC, unless NetworkStack exists."""
    if _makes_network(settings, existing):
        yield _one_more("vpcs", len([*every(client("ec2"), "describe_vpcs", "Vpcs")]), client)


def check_address_quota(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check the quota for one more Elastic IP address, which the NAT gateway needs."""
    if _makes_network(settings, existing):
        yield _one_more("elastic_ips", len(client("ec2").describe_addresses()["Addresses"]), client)


def check_nat_quota(
    settings: Settings, existing: ExistingNetwork, choose: Chooser, client: ClientOf
) -> Iterator[Finding]:
    """Check the quota for one more NAT gateway in the zone of the deploy."""
    if _makes_network(settings, existing) and (zone_id := choose().zone_id):
        yield _one_more("nat_gateways", _nat_gateways(zone_id, client("ec2")), client)


def check_lustre_quota(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check the quota for the capacity of Lustre, unless StorageStack exists."""
    if settings.fsx_id or existing.has(STORAGE_STACK):
        return
    types = _TYPES[settings.fsx_type]
    used = sum(
        each.get("StorageCapacity", 0)
        for each in every(client("fsx"), "describe_file_systems", "FileSystems")
        if each.get("LustreConfiguration", {}).get("DeploymentType") in types
    )
    quotas = load_base().quotas
    quota = quotas.fsx_persistent2_gib if settings.fsx_type == "persistent2" else quotas.fsx_scratch2_gib
    yield judge_quota(quota, client, used=used, wanted=settings.fsx_gib)


def _makes_network(settings: Settings, existing: ExistingNetwork) -> bool:
    return not settings.vpc_id and not existing.has(NETWORK_STACK)


def _one_more(name: str, used: int, client: ClientOf) -> Finding:
    return judge_quota(getattr(load_base().quotas, name), client, used=used, wanted=1)


def _nat_gateways(zone_id: str, ec2: Any) -> int:
    filters = [{"Name": "state", "Values": _EXISTING}]
    subnets = [
        each["SubnetId"]
        for each in every(ec2, "describe_nat_gateways", "NatGateways", Filters=filters)
        if "SubnetId" in each
    ]
    if not subnets:
        return 0
    asked = [{"Name": "subnet-id", "Values": sorted(set(subnets))}]
    found = {
        each["SubnetId"]: each["AvailabilityZoneId"]
        for each in ec2.describe_subnets(Filters=asked)["Subnets"]
    }
    return sum(found.get(subnet) == zone_id for subnet in subnets)
