"""Checks the quotas of the account, but for vCPUs: of what each node adds, and of what all clusters share."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from ops.account.session import ClientOf, every, unless
from ops.preflight.capacity.zone import Chooser
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from training_cluster.catalog.families import load_base
from training_cluster.catalog.quotas import Quota, VcpuQuota
from training_cluster.cluster.fleet import GP3, fleet, volumes
from training_cluster.flags.settings import Settings
from training_cluster.overrides.storage import managed_storage
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.stack_names import NETWORK_STACK, STORAGE_STACK

_CLUSTER_TAG = "parallelcluster:cluster-name"
_VOLUMES = [{"Name": "volume-type", "Values": [GP3]}]
_GIB_PER_TIB = 1024
_TYPES = {"persistent2": "PERSISTENT_2", "scratch2": "SCRATCH_2"}
_EXISTING = ["pending", "available", "deleting"]


def judge_quota(quota: Quota | VcpuQuota, client: ClientOf, *, used: float, wanted: float) -> Finding:
    """Compare a quota with the usage of the full cluster.

    Args:
        used: usage by others than the cluster.
        wanted: usage of a full cluster.
    """
    service = "ec2" if isinstance(quota, VcpuQuota) else quota.service
    allowed = _value(service, quota.code, client("service-quotas"))
    return finding(
        f"quota: {quota.name}",
        f"{allowed:g}, of which {used:g} used by others, {wanted:g} needed",
        good=used + wanted <= allowed,
        mend=f"aws service-quotas request-service-quota-increase --service-code {service} "
        f"--quota-code {quota.code} --desired-value {used + wanted:g}",
    )


def _value(service: str, code: str, client: Any) -> float:
    """Return the account's value, or AWS's default if nobody ever requested another."""
    asked = {"ServiceCode": service, "QuotaCode": code}
    own = unless(lambda: client.get_service_quota(**asked), "NoSuchResourceException")
    answer = own or client.get_aws_default_service_quota(**asked)
    return float(answer["Quota"]["Value"])


def is_of(cluster_name: str, described: dict[str, Any]) -> bool:
    """Return True if ParallelCluster made a described resource for the cluster."""
    return {"Key": _CLUSTER_TAG, "Value": cluster_name} in described.get("Tags", [])


def check_interface_quota(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the quota of network interfaces: a p5.48xlarge has 32, one on each network card."""
    ec2 = client("ec2")
    found = len([*every(ec2, "describe_network_interfaces", "NetworkInterfaces")])
    wanted = sum(each.interfaces * each.most for each in fleet(config_before_deploy(settings)))
    # The interfaces of the cluster's instances have no tag of the cluster themselves.
    own = sum(
        len(instance.get("NetworkInterfaces", []))
        for instance in every(ec2, "describe_instances", "Reservations", "Instances")
        if is_of(settings.cluster_name, instance)
    )
    yield judge_quota(load_base().quotas.network_interfaces, client, used=found - own, wanted=wanted)


def check_volume_quota(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the quota of gp3 volumes, in TiB, for the root volumes of all nodes, and for shared storage."""
    there = every(client("ec2"), "describe_volumes", "Volumes", Filters=_VOLUMES)
    used = sum(each["Size"] for each in there if not is_of(settings.cluster_name, each))
    found = volumes(config_before_deploy(settings))
    wanted = sum(each.count * each.gib for each in found if each.type == GP3)
    used_tib, wanted_tib = (round(each / _GIB_PER_TIB, 2) for each in (used, wanted))
    yield judge_quota(load_base().quotas.gp3_tib, client, used=used_tib, wanted=wanted_tib)


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
