"""Checks of the subnets that queues and login nodes have for themselves, by their files."""

from collections.abc import Iterator, Mapping
from typing import Any

from ops.account.deploy_command import stacks_command
from ops.account.session import ClientOf
from ops.preflight.existing_network import ExistingNetwork, read_subnet
from ops.preflight.finding import Finding, finding
from ops.preflight.network.routes import check_egress, route_table
from training_cluster.cluster.fleet import addresses_in
from training_cluster.cluster.resource_ids import network_subnets
from training_cluster.flags.settings import Settings
from training_cluster.overrides.nodes import placed_nodes
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.stack_names import STACK_IDS, STORAGE_STACK


def check_queue_subnets(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check each subnet: its VPC, a queue's way to the internet, EFS in its zone, its free addresses."""
    config, ours, ec2 = config_before_deploy(settings), network_subnets(settings), client("ec2")
    for path, node in placed_nodes(config):
        of_queue = path.startswith("Scheduling")
        place = f"subnet_ids of {node['Name']} in {settings.queues}" if of_queue else f"{path}: SubnetIds"
        for id_ in (each for each in node["Networking"].get("SubnetIds", ()) if each not in ours):
            name = f"{'queue' if of_queue else 'login nodes'} {node['Name']}: {id_}"
            subnet = read_subnet(id_, ec2)
            yield finding(
                name,
                f"in {subnet['VpcId']}, {subnet['AvailabilityZoneId']}" if subnet else "missing",
                good=subnet is not None and existing.vpc_id in {None, subnet["VpcId"]},
                mend=f"{place}: aws ec2 describe-subnets --filters "
                f"Name=vpc-id,Values={existing.vpc_id or '...'}",
            )
            if subnet is None:
                continue
            if of_queue:
                check = f"{name}: route to the internet"
                yield check_egress(route_table(subnet, ec2), config, check, f"{place}: one")
            if existing.zone_id and subnet["AvailabilityZoneId"] != existing.zone_id:
                yield _mount_target(name, subnet, settings, existing, client("efs"))
            free, needed = subnet["AvailableIpAddressCount"], addresses_in(id_, config)
            yield finding(
                f"{name}: free addresses",
                f"{free}, of which a full cluster takes {needed}",
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
