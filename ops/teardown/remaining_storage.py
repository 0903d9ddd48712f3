"""Reads the resources of StorageStack, also of a deleted one."""

from collections.abc import Iterable, Iterator
from typing import Any

from ops.account.session import every
from ops.teardown.remaining import Efs, Link, Lustre
from ops.teardown.tagged import is_our_bucket, is_ours
from training_cluster.stack_names import STORAGE_STACK

GROUP_PREFIX = f"{STORAGE_STACK}-Storage"
"""Prefix of the file systems' security groups (CloudFormation builds the names; compared in a test)."""


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
