"""Checks of the subnets that the file of queues names."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

from ops.account.deploy_command import stacks_command
from ops.account.session import ClientOf
from ops.preflight.existing_network import ExistingNetwork, read_subnet
from ops.preflight.finding import Finding, finding
from ops.preflight.network.routes import check_egress, route_table
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.queues.queue import Queue
from training_cluster.stack_names import STACK_IDS, STORAGE_STACK


def check_queue_subnets(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check each subnet: its VPC, its way to the internet, EFS in its zone, addresses for its queue."""
    for queue in settings.all_queues:
        for id_ in queue.subnet_ids:
            yield from _check(id_, queue, settings, existing, client)


def _check(
    id_: str, queue: Queue, settings: Settings, existing: ExistingNetwork, client: ClientOf
) -> Iterator[Finding]:
    ec2 = client("ec2")
    name, subnet = f"queue {queue.name}: {id_}", read_subnet(id_, ec2)
    place = f"subnet_ids of {queue.name} in {settings.queues}"
    yield finding(
        name,
        f"in {subnet['VpcId']}, {subnet['AvailabilityZoneId']}" if subnet else "missing",
        good=subnet is not None and existing.vpc_id in {None, subnet["VpcId"]},
        mend=f"{place}: aws ec2 describe-subnets --filters Name=vpc-id,Values={existing.vpc_id or '...'}",
    )
    if subnet is None:
        return
    check, config = f"{name}: route to the internet", config_before_deploy(settings)
    yield check_egress(route_table(subnet, ec2), config, check, f"{place}: one")
    if existing.zone_id and subnet["AvailabilityZoneId"] != existing.zone_id:
        yield _mount_target(name, subnet, settings, existing, client("efs"))
    # Its nodes may start in any of its subnets.
    free, needed = subnet["AvailableIpAddressCount"], math.ceil(queue.addresses / len(queue.subnet_ids))
    yield finding(
        f"{name}: free addresses",
        f"{free}, of which the full queue takes {needed}",
        good=free >= needed,
        otherwise="warning",
        mend=f"{place}: a larger one, or fewer nodes",
    )


def _mount_target(
    name: str, subnet: Mapping[str, Any], settings: Settings, existing: ExistingNetwork, efs: Any
) -> Finding:
    """Check EFS in another zone: ParallelCluster's EfsIdValidator wants a mount target there.

    StorageStack makes one target, in the zone of the private subnet.
    """
    zone, id_ = subnet["AvailabilityZoneId"], settings.efs_id
    if id_ is None and existing.has(STORAGE_STACK):
        id_ = existing.stacks[STORAGE_STACK].outputs.get("EfsId")
    found = efs.describe_mount_targets(FileSystemId=id_)["MountTargets"] if id_ else []
    first = "" if id_ else f"{stacks_command([STACK_IDS[STORAGE_STACK]], settings)}, then "
    return finding(
        f"{name}: mount target of EFS",
        f"in {zone}" if any(each["AvailabilityZoneId"] == zone for each in found) else f"none in {zone}",
        good=any(each["AvailabilityZoneId"] == zone for each in found),
        mend=f"{first}aws efs create-mount-target --file-system-id {id_ or 'fs-...'} --subnet-id "
        f"{subnet['SubnetId']} --security-groups sg-... (the group of its other mount target)",
    )
