"""The bucket and the file systems that StorageStack retains: reading, cost and deletion."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.session import every
from ops.teardown.step import Step
from ops.teardown.tagged import is_our_bucket, is_ours
from training_cluster.catalog import charges
from training_cluster.catalog.charges import Charge
from training_cluster.catalog.prices import Prices
from training_cluster.stack_names import STORAGE_STACK

GROUP_PREFIX = f"{STORAGE_STACK}-Storage"
"""Prefix of the file systems' security groups (CloudFormation builds the names; compared in a test)."""
_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Link:
    """A data repository association."""

    id: str
    folder: str
    target: str
    """Path in the bucket."""
    exports: bool
    """True if files that are written to the folder are exported to the bucket."""


@dataclass(frozen=True, kw_only=True)
class Lustre:
    """An FSx for Lustre file system."""

    id: str
    deployment_type: str
    capacity_gib: int
    mbps_per_tib: int | None
    links: tuple[Link, ...]


@dataclass(frozen=True, kw_only=True)
class Efs:
    """An EFS file system."""

    id: str
    size_bytes: int
    provisioned_mibps: float | None
    mount_target_ids: tuple[str, ...]


def read_lustre(fsx: Any, ids: set[str]) -> Iterator[Lustre]:
    """Yield the Lustre file systems of a stack, by id, and those with our tag."""
    for each in every(fsx, "describe_file_systems", "FileSystems"):
        id_, lustre = each["FileSystemId"], each.get("LustreConfiguration")
        if lustre and (id_ in ids or is_ours(each.get("Tags", []))):
            yield Lustre(
                id=id_,
                deployment_type=lustre.get("DeploymentType", ""),
                capacity_gib=each["StorageCapacity"],
                mbps_per_tib=lustre.get("PerUnitStorageThroughput"),
                links=tuple(_links(fsx, id_)),
            )


def _links(fsx: Any, file_system_id: str) -> Iterator[Link]:
    answer = fsx.describe_data_repository_associations(
        Filters=[{"Name": "file-system-id", "Values": [file_system_id]}]
    )
    for each in answer["Associations"]:
        yield Link(
            id=each["AssociationId"],
            folder=each.get("FileSystemPath", ""),
            target=each.get("DataRepositoryPath", ""),
            exports="AutoExportPolicy" in each.get("S3", {}),
        )


def read_efs(efs: Any, ids: set[str], goes: set[str]) -> Iterator[Efs]:
    """Yield the EFS file systems of a stack, by id, and those with our tag.

    Args:
        goes: ids of resources that are deleted with the stack, such as mount targets.
    """
    for each in every(efs, "describe_file_systems", "FileSystems"):
        id_ = each["FileSystemId"]
        if id_ in ids or is_ours(each.get("Tags", [])):
            targets = efs.describe_mount_targets(FileSystemId=id_)["MountTargets"]
            yield Efs(
                id=id_,
                size_bytes=each["SizeInBytes"]["Value"],
                provisioned_mibps=each.get("ProvisionedThroughputInMibps"),
                mount_target_ids=tuple({t["MountTargetId"] for t in targets} - goes),
            )


def buckets_of_region(s3: Any) -> list[str]:
    """Return the names of the account's buckets in the client's region."""
    buckets = every(s3, "list_buckets", "Buckets", BucketRegion=s3.meta.region_name)
    return [each["Name"] for each in buckets]


def our_buckets(names: Iterable[str], s3: Any, ids: set[str]) -> Iterator[str]:
    """Yield the buckets of a stack, by name, and those with our tag."""
    return (name for name in names if name in ids or is_our_bucket(name, s3))


def tagged_groups(ec2: Any) -> dict[str, str]:
    """Return the names of the security groups with our tag, by id; a name has the prefix of its stack."""
    found = every(ec2, "describe_security_groups", "SecurityGroups")
    return {each["GroupId"]: each["GroupName"] for each in found if is_ours(each.get("Tags", []))}


def lustre_charge(system: Lustre, prices: Prices) -> Charge:
    """Return the cost of a Lustre file system."""
    speed = f", {system.mbps_per_tib} MB/s a TiB" if system.mbps_per_tib else ""
    what = f"{system.id}  FSx for Lustre, {system.deployment_type}, {system.capacity_gib} GiB{speed}"
    return charges.lustre(
        what, prices, system.deployment_type, gib=system.capacity_gib, mbps_per_tib=system.mbps_per_tib
    )


def efs_charge(system: Efs, prices: Prices) -> Charge:
    """Return the cost of an EFS file system."""
    gib, mibps = system.size_bytes / _GIB, system.provisioned_mibps or 0
    speed = f" at {mibps:g} MiB/s" if mibps else ""
    return charges.efs(f"{system.id}  EFS, {gib:,.1f} GiB{speed}", prices, gib=gib, mibps=mibps)


def lustre_steps(system: Lustre) -> Iterator[Step]:
    """Yield the steps that export its files, remove its links, and delete a Lustre file system."""
    which = f"--filters Name=file-system-id,Values={system.id}"
    exported = [link.folder.strip("/") for link in system.links if link.exports]
    if exported:
        yield Step(
            title=f"Export of files of {system.id} in {' and '.join(exported)} that the bucket lacks, if you "
            "need them; repeat the last command until it prints SUCCEEDED",
            commands=(
                *(
                    "aws fsx create-data-repository-task --type EXPORT_TO_REPOSITORY --report Enabled=false "
                    f"--file-system-id {system.id} --paths {folder}"
                    for folder in exported
                ),
                f"aws fsx describe-data-repository-tasks --query 'DataRepositoryTasks[].Lifecycle' {which}",
            ),
        )
    if system.links:
        count = "aws fsx describe-data-repository-associations --output text --query 'length(Associations)'"
        yield Step(
            title=f"Its links: {' and '.join(f'{link.folder} to {link.target}' for link in system.links)}",
            commands=(
                *(
                    "aws fsx delete-data-repository-association --no-delete-data-in-file-system "
                    f"--association-id {link.id}"
                    for link in system.links
                ),
                _wait_command(f"{count} {which} | grep -x 0", seconds=10),
            ),
        )
    gone = f"aws fsx describe-file-systems --file-system-ids {system.id} 2>&1 | grep FileSystemNotFound"
    yield Step(
        title=f"{system.id}, with all files that are in no bucket; this takes minutes",
        commands=(
            f"aws fsx delete-file-system --file-system-id {system.id}",
            _wait_command(gone, seconds=30),
        ),
        is_data_lost=True,
    )


def efs_step(system: Efs) -> Step:
    """Return the step that deletes an EFS file system."""
    commands = [f"aws efs delete-mount-target --mount-target-id {id_}" for id_ in system.mount_target_ids]
    if commands:
        count = "aws efs describe-mount-targets --output text --query 'length(MountTargets)'"
        commands.append(_wait_command(f"{count} --file-system-id {system.id} | grep -x 0", seconds=10))
    return Step(
        title=f"{system.id}, with all files on it"
        + ("; the deletion of its mount targets takes a minute" if commands else ""),
        commands=(*commands, f"aws efs delete-file-system --file-system-id {system.id}"),
        is_data_lost=True,
    )


def _wait_command(condition: str, *, seconds: int) -> str:
    """Return a wait loop with a limit, for bash and zsh; a CLI call that fails is repeated."""
    return f"for n in {{1..60}}; do {condition} && break; sleep {seconds}; done"


def bucket_step(name: str) -> Step:
    """Return the step that deletes a bucket."""
    title = f"The bucket {name}, with every version of every object"
    return Step(title=title, commands=delete_bucket_commands(name), is_data_lost=True)


def delete_bucket_commands(bucket: str) -> tuple[str, str]:
    """Return the commands that empty and delete a bucket; `aws s3 rm` leaves old versions and markers."""
    versions = f'boto3.resource("s3").Bucket("{bucket}").object_versions'
    empty = f".venv/bin/python -c 'import boto3; {versions}.delete()'"
    return empty, f"aws s3api delete-bucket --bucket {bucket}"
