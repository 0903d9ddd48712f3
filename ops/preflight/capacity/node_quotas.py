"""Checks the quotas of what each node adds: network interfaces, and a root volume."""

from collections.abc import Iterator
from typing import Any

from ops.account.session import ClientOf
from ops.preflight.capacity.service_quotas import judge_quota
from ops.preflight.finding import Finding
from training_cluster.catalog.families import load_base
from training_cluster.cluster.fleet import GP3, volumes
from training_cluster.cluster.nodes import login_pools
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy

_CLUSTER_TAG = "parallelcluster:cluster-name"
_VOLUMES = [{"Name": "volume-type", "Values": [GP3]}]
_GIB_PER_TIB = 1024


def check_interface_quota(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the quota of network interfaces: a p5.48xlarge has 32, one on each network card."""
    ec2 = client("ec2")
    pages = ec2.get_paginator("describe_network_interfaces").paginate()
    found = sum(len(page["NetworkInterfaces"]) for page in pages)
    wanted = 1 + sum(each["Count"] for each in login_pools(config_before_deploy(settings)))
    for queue in settings.all_queues:
        wanted += sum(each.interfaces * each.max_count for each in queue.compute_resources)
    used = found - _own_interfaces(settings.cluster_name, ec2)
    yield judge_quota(load_base().quotas.network_interfaces, client, used=used, wanted=wanted)


def check_volume_quota(settings: Settings, client: ClientOf) -> Iterator[Finding]:
    """Check the quota of gp3 volumes, in TiB, for the root volumes of all nodes, and for shared storage."""
    used = 0
    for page in client("ec2").get_paginator("describe_volumes").paginate(Filters=_VOLUMES):
        used += sum(each["Size"] for each in page["Volumes"] if not is_of(settings.cluster_name, each))
    found = volumes(config_before_deploy(settings))
    wanted = sum(each.count * each.gib for each in found if each.type == GP3)
    used_tib, wanted_tib = (round(each / _GIB_PER_TIB, 2) for each in (used, wanted))
    yield judge_quota(load_base().quotas.gp3_tib, client, used=used_tib, wanted=wanted_tib)


def _own_interfaces(cluster_name: str, ec2: Any) -> int:
    """Count the interfaces of the cluster's instances, which have no tag of the cluster themselves."""
    return sum(
        len(instance.get("NetworkInterfaces", []))
        for page in ec2.get_paginator("describe_instances").paginate()
        for group in page["Reservations"]
        for instance in group["Instances"]
        if is_of(cluster_name, instance)
    )


def is_of(cluster_name: str, described: dict[str, Any]) -> bool:
    """Return True if ParallelCluster made a described resource for the cluster."""
    return {"Key": _CLUSTER_TAG, "Value": cluster_name} in described.get("Tags", [])
