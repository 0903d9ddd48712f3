"""Checks EC2's quotas of running vCPUs, which families share; on-demand and spot have separate ones."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.session import ClientOf, every
from ops.preflight.capacity.quotas import is_of, judge_quota
from ops.preflight.finding import Finding
from training_cluster.catalog.families import head_node_size, load_base
from training_cluster.catalog.quotas import QuotaCapacityType, VcpuQuota
from training_cluster.cluster.fleet import compute_nodes, fleet
from training_cluster.cluster.nodes import Rendered
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy

_BLOCK = "capacity-block"


@dataclass(frozen=True)
class Instances:
    """A number of instances of one type."""

    type: str
    count: int
    capacity_type: QuotaCapacityType = "ondemand"


def wanted_instances(config: Rendered) -> list[Instances]:
    """List a full cluster's instances without reserved ones; the image's builder ends before they run."""
    return [
        # Of several types the first: they have the same number of vCPUs.
        Instances(each.types[0], each.most, "spot" if each.kind == "spot" else "ondemand")
        for each in fleet(config)
        if each.most and each.kind in {"ondemand", "spot"}
    ]


def check_vcpu_quotas(settings: Settings, account: str, client: ClientOf) -> Iterator[Finding]:
    """Check every quota against which a full cluster counts."""
    config = config_before_deploy(settings)
    for id_, kind in {each.reservation: each.kind for each in compute_nodes(config)}.items():
        if id_:
            yield Finding(check=f"quota of vCPUs: the nodes of {id_}", found=_of_reserved(kind))
    wanted = wanted_instances(config)
    ec2 = client("ec2")
    there = [*_running(settings.cluster_name, ec2), *_reserved_and_idle(account, ec2)]
    vcpus = _vcpus({each.type for each in (*wanted, *there)}, ec2)
    used, asked = _by_quota(there, vcpus), _by_quota(wanted, vcpus)
    for quota, number in asked.items():
        if quota is not None:
            yield judge_quota(quota, client, used=used[quota], wanted=number)
    for each in wanted:
        if _quota(each) is None:
            yield Finding(
                check=f"quota of vCPUs: {each.type}, {each.capacity_type}",
                found="not checked: no source names the quota against which it counts",
                verdict="warning",
                mend="aws service-quotas list-service-quotas --service-code ec2",
            )


def _of_reserved(kind: str) -> str:
    if kind == _BLOCK:
        return "instances of a Capacity Block count against none of these quotas (unconfirmed)"
    return "they counted when the reservation was created, and do not count again when they run"


def _quota(instances: Instances) -> VcpuQuota | None:
    return load_base().quotas.vcpu_quota(instances.type, instances.capacity_type)


def _by_quota(instances: Iterable[Instances], vcpus: dict[str, int]) -> Counter[VcpuQuota | None]:
    found = Counter[VcpuQuota | None]()
    for each in instances:
        found[_quota(each)] += each.count * vcpus.get(each.type, 0)
    return found


def _running(cluster_name: str, ec2: Any) -> Iterator[Instances]:
    """Yield running instances of others than this cluster, without a Capacity Block's."""
    states = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]
    for instance in every(ec2, "describe_instances", "Reservations", "Instances", Filters=states):
        how = instance.get("InstanceLifecycle", "")
        if not is_of(cluster_name, instance) and how != _BLOCK:
            yield Instances(instance["InstanceType"], 1, "spot" if how == "spot" else "ondemand")


def _reserved_and_idle(account: str, ec2: Any) -> Iterator[Instances]:
    """Yield idle reserved instances, which count, too (EC2's API reference, CreateCapacityReservation)."""
    active = [{"Name": "state", "Values": ["active"]}]
    for each in every(ec2, "describe_capacity_reservations", "CapacityReservations", Filters=active):
        is_ours = each.get("OwnerId", account) == account and each.get("ReservationType") != _BLOCK
        if is_ours and each["AvailableInstanceCount"]:
            yield Instances(each["InstanceType"], each["AvailableInstanceCount"])


def _vcpus(types: Iterable[str], ec2: Any) -> dict[str, int]:
    """Return the vCPUs of each type, from the catalog or EC2, without types that the region lacks."""
    sizes = {each: head_node_size(each) for each in sorted(types)}
    known = {each: size.vcpus for each, size in sizes.items() if size}
    unknown = [each for each, size in sizes.items() if size is None]
    if unknown:
        filters = [{"Name": "instance-type", "Values": unknown}]
        for each in every(ec2, "describe_instance_types", "InstanceTypes", Filters=filters):
            known[each["InstanceType"]] = each["VCpuInfo"]["DefaultVCpus"]
    return known
