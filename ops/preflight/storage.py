"""Checks of existing Lustre and EFS file systems; bucket.py checks the bucket."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ops.account.session import ClientOf, unless
from ops.preflight.bucket import check_bucket
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding, finding
from ops.preflight.network.security_groups import Peer, authorize_commands, describe_groups, ports_open
from training_cluster.catalog.ports import LUSTRE_PORTS, NFS_PORT
from training_cluster.flags.network import CHINA
from training_cluster.flags.settings import Settings

# Older versions take no data repository associations (FSx's API reference); it is unconfirmed that present
# clients can mount them.
_OLDEST_LUSTRE = (2, 12)
_CHECKPOINTS = "/checkpoints"


def check_storage(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check storage that is given by name or id, and that FSx offers its type in the region's partition."""
    if settings.bucket_name:
        yield from check_bucket(settings.bucket_name, client)
    if settings.fsx_id:
        yield from _lustre(settings.fsx_id, settings.bucket_name, existing, client)
    if settings.efs_id:
        yield from _efs(settings.efs_id, existing, client)
    # FSx's page of the China guide, "Feature Availability and Implementation Differences".
    if settings.fsx_type == "scratch2" and not settings.fsx_id and client("fsx").meta.partition == CHINA:
        yield Finding(
            check="fsx_type=scratch2",
            found="FSx has no Scratch file systems in China",
            verdict="problem",
            mend="leave fsx_type out",
        )


def _lustre(id_: str, bucket: str | None, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    fsx, check = client("fsx"), f"fsx_id {id_}"
    answer = unless(lambda: fsx.describe_file_systems(FileSystemIds=[id_]), "FileSystemNotFound")
    found = answer["FileSystems"] if answer else []
    if not found or found[0]["FileSystemType"] != "LUSTRE":
        what = f"of type {found[0]['FileSystemType']}" if found else "missing"
        mend = "aws fsx describe-file-systems, then -c fsx_id=..."
        yield Finding(check=check, found=what, verdict="problem", mend=mend)
        return
    system = found[0]
    state, version = system["Lifecycle"], system.get("FileSystemTypeVersion", "2.10")
    yield finding(check, state, good=state in {"AVAILABLE", "UPDATING"}, mend=_wait_command("fsx", id_))
    is_new = _numbers(version) >= _OLDEST_LUSTRE
    yield finding(
        "Lustre: version",
        version,
        good=is_new,
        otherwise="warning",
        mend=f"aws fsx update-file-system --file-system-id {id_} --file-system-type-version 2.15",
    )
    if is_new:
        yield _exports(id_, bucket, fsx)
    yield _same_vpc("Lustre", system["VpcId"], existing)
    ids = system.get("NetworkInterfaceIds", [])
    interfaces = (
        client("ec2").describe_network_interfaces(NetworkInterfaceIds=ids)["NetworkInterfaces"] if ids else []
    )
    groups = {group["GroupId"] for interface in interfaces for group in interface["Groups"]}
    yield _reachable("Lustre", groups, LUSTRE_PORTS, existing, client("ec2"))


def _exports(id_: str, bucket: str | None, fsx: Any) -> Finding:
    """Check that checkpoints are exported; the app adds no associations to a file system of the user's."""
    filters = [{"Name": "file-system-id", "Values": [id_]}]
    links = fsx.describe_data_repository_associations(Filters=filters)["Associations"]
    folders = [
        str(link.get("FileSystemPath", ""))
        for link in links
        if link.get("S3", {}).get("AutoExportPolicy", {}).get("Events")
    ]
    return finding(
        "Lustre: checkpoints go to a bucket",
        ", ".join(folders) or "no association exports to a bucket: checkpoints are on the file system only",
        good=any(folder.rstrip("/") in {"", _CHECKPOINTS} for folder in folders),
        otherwise="warning",
        mend=f"aws fsx create-data-repository-association --file-system-id {id_} --file-system-path "
        f"{_CHECKPOINTS} --data-repository-path s3://{bucket or 'BUCKET'}{_CHECKPOINTS}/ "
        "--s3 'AutoExportPolicy={Events=[NEW,CHANGED]}'",
    )


def _efs(id_: str, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    efs, check = client("efs"), f"efs_id {id_}"
    answer = unless(lambda: efs.describe_mount_targets(FileSystemId=id_), "FileSystemNotFound")
    if answer is None:
        mend = "aws efs describe-file-systems, then -c efs_id=..."
        yield Finding(check=check, found="missing", verdict="problem", mend=mend)
        return
    yield Finding(check=check, found="exists")
    targets: list[Mapping[str, Any]] = answer["MountTargets"]
    yield _has_mount_target(id_, targets, existing)
    for target in targets[:1]:  # all of them are in one VPC
        yield _same_vpc("EFS", target["VpcId"], existing)
    for target in (each for each in targets if each.get("AvailabilityZoneId") == existing.zone_id):
        groups = efs.describe_mount_target_security_groups(MountTargetId=target["MountTargetId"])
        yield _reachable(
            "EFS", set(groups["SecurityGroups"]), ((NFS_PORT, NFS_PORT),), existing, client("ec2")
        )


def _has_mount_target(id_: str, targets: list[Mapping[str, Any]], existing: ExistingNetwork) -> Finding:
    zones = sorted(str(each.get("AvailabilityZoneId")) for each in targets)
    listed = f"in {', '.join(zones)}" if zones else "none"
    if existing.private is None:
        return Finding(
            check="EFS: mount target",
            found=f"{listed}; the zone of the network is unknown until it exists",
            verdict="warning",
            mend=f"{existing.deploy_command}, then this again",
        )
    group = existing.node_group_id or "sg-..."
    return finding(
        f"EFS: mount target in {existing.zone_id}",
        listed,
        good=existing.zone_id in zones,
        mend=f"aws efs create-mount-target --file-system-id {id_} --subnet-id {existing.private['SubnetId']} "
        f"--security-groups {group}",
    )


def _same_vpc(name: str, vpc_id: str, existing: ExistingNetwork) -> Finding:
    here = existing.vpc_id or "a new VPC"
    return finding(
        f"{name}: in the nodes' VPC",
        vpc_id if vpc_id == existing.vpc_id else f"{vpc_id}, and the nodes in {here}",
        good=vpc_id == existing.vpc_id,
        mend=f"-c vpc_id={vpc_id} -c public_subnet_id=... -c private_subnet_id=...",
    )


def _reachable(
    name: str, group_ids: set[str], ports: tuple[tuple[int, int], ...], existing: ExistingNetwork, ec2: Any
) -> Finding:
    """Check that the security groups allow the nodes in and out; else ParallelCluster refuses the cluster."""
    listed = ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in ports)
    check = f"{name}: open to the nodes on {listed}"
    groups = describe_groups(group_ids, ec2) if group_ids else []
    shown = ", ".join(sorted(group_ids)) or "no security group"
    peer = Peer(group_id=existing.node_group_id, cidr=existing.cidr)
    if all(ports_open(groups, each, peer) for each in ports):
        return Finding(check=check, found=shown)
    if existing.node_group_id is None:
        return Finding(
            check=check,
            found=f"{shown}; NetworkStack creates the nodes' security group",
            verdict="warning",
            mend=f"{existing.deploy_command}, then this again: it prints the rules to add",
        )
    group_id = min(group_ids, default="sg-...")
    return Finding(
        check=check,
        found=f"{shown}, not open in both directions",
        verdict="problem",
        mend=authorize_commands(group_id, ports, existing.node_group_id),
    )


def _wait_command(service: str, id_: str) -> str:
    return f"aws {service} describe-file-systems --file-system-ids {id_}, until it is AVAILABLE"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
