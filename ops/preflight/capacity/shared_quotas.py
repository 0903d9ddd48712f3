"""Checks the quotas for resources that all clusters share: the network and the Lustre file system."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ops.account.session import ClientOf, every
from ops.preflight.capacity.node_quotas import is_of
from ops.preflight.capacity.service_quotas import judge_quota
from ops.preflight.capacity.zone import Chooser
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding
from training_cluster.catalog.families import load_base
from training_cluster.flags.settings import Settings
from training_cluster.overrides.storage import managed_storage
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.stack_names import NETWORK_STACK, STORAGE_STACK

_TYPES = {"persistent2": "PERSISTENT_2", "scratch2": "SCRATCH_2"}
_EXISTING = ["pending", "available", "deleting"]


def check_vpc_quota(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check the quota for one more VPC, unless NetworkStack exists."""
    if _makes_network(settings, existing):
        yield _one_more("vpcs", len([*every(client("ec2"), "describe_vpcs", "Vpcs")]), client)


def check_address_quota(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check the quota for Elastic IP addresses: of the NAT gateway, and of a head node that asks for one."""
    own = config_before_deploy(settings)["HeadNode"]["Networking"].get("ElasticIp") is True
    if wanted := _makes_network(settings, existing) + own:
        there = client("ec2").describe_addresses()["Addresses"]
        used = sum(not is_of(settings.cluster_name, each) for each in there)
        yield judge_quota(load_base().quotas.elastic_ips, client, used=used, wanted=wanted)


def check_nat_quota(
    settings: Settings, existing: ExistingNetwork, choose: Chooser, client: ClientOf
) -> Iterator[Finding]:
    """Check the quota for one more NAT gateway in the zone of the deploy."""
    if _makes_network(settings, existing) and (zone_id := choose().zone_id):
        yield _one_more("nat_gateways", _nat_gateways(zone_id, client("ec2")), client)


def check_lustre_quota(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check the quotas for the capacity of Lustre: of StorageStack's, and of more in the cluster config."""
    wanted = Counter[str]()
    if not settings.fsx_id and not existing.has(STORAGE_STACK):
        wanted[_TYPES[settings.fsx_type]] += settings.fsx_gib
    for each in managed_storage(config_before_deploy(settings)):
        if each.kind == "FsxLustre":  # of a backup ParallelCluster gives no type, and FSx its size
            type_ = each.settings.get("DeploymentType", "SCRATCH_2")
            wanted[type_] += each.settings.get("StorageCapacity", 0)
    quotas = load_base().quotas
    for types, quota in (
        (("PERSISTENT_2",), quotas.fsx_persistent2_gib),
        (("SCRATCH_1", "SCRATCH_2"), quotas.fsx_scratch2_gib),
    ):
        if asked := sum(wanted[each] for each in types):
            used = sum(
                each.get("StorageCapacity", 0)
                for each in every(client("fsx"), "describe_file_systems", "FileSystems")
                if each.get("LustreConfiguration", {}).get("DeploymentType") in types
                and not is_of(settings.cluster_name, each)
            )
            yield judge_quota(quota, client, used=used, wanted=asked)


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
