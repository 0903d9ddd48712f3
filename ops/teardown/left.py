"""What there is in the account of ours that outlives its stack, whether the stack is still there or not."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ops.session import ClientOf
from ops.stacks import FOUNDATIONS, Resource, Stack, cluster_stack_name

# What retained resources are called, with their stack gone. CloudFormation makes names from the stack's and
# the logical id (tests/unit/test_teardown.py compares them with the templates).
BUCKET_PREFIX = "storagestack-storage"
GROUP_PREFIXES = ("StorageStack-Storage", "AccountingStack-Accounting")
NAME_TAGS = ("training-cluster", "StorageStack/", "AccountingStack/")
DATABASE_PREFIX = "accountingstack-accounting"
PCLUSTER_FUNCTIONS = "/aws/lambda/pcluster-"
PCLUSTER_BUCKET = re.compile(r"parallelcluster-[0-9a-f]{16}-v1-do-not-delete")


@dataclass(frozen=True, kw_only=True)
class Link:
    """A data repository association."""

    id: str
    folder: str
    target: str
    """Where in the bucket."""
    exports: bool
    """Whether what is written to the folder goes to the bucket."""


@dataclass(frozen=True, kw_only=True)
class Lustre:
    """A Lustre file system."""

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


@dataclass(frozen=True, kw_only=True)
class Left:
    """Everything of ours that no stack deletes."""

    lustre: tuple[Lustre, ...] = ()
    efs: tuple[Efs, ...] = ()
    buckets: tuple[str, ...] = ()
    accounting: tuple[Resource, ...] = ()
    """Of AccountingStack."""
    groups: tuple[str, ...] = ()
    """Security groups of the file systems."""
    log_groups: tuple[str, ...] = ()
    """Of the cluster, and of our stacks."""
    pcluster_log_groups: tuple[str, ...] = ()
    """Of ParallelCluster's functions; which cluster they were of, they do not say."""
    parameters: tuple[str, ...] = ()
    pcluster_buckets: tuple[str, ...] = ()


def read_left(stacks: dict[str, Stack], cluster_name: str, client: ClientOf) -> Left:
    """Ask each service. Raises botocore's errors."""
    storage, accounting = stacks.get("StorageStack"), stacks.get("AccountingStack")
    ids = {each.physical_id for each in storage.resources if each.kept} if storage else set()
    goes = {each.physical_id for each in storage.resources if not each.kept} if storage else set()
    buckets, groups = _buckets(client("s3")), _groups(client("ec2"))
    return Left(
        lustre=tuple(_lustre(client("fsx"), ids)),
        efs=tuple(_efs(client("efs"), ids, goes)),
        buckets=tuple(name for name in buckets if name in ids or name.startswith(BUCKET_PREFIX)),
        accounting=_kept_of(accounting) if accounting else tuple(_accounting(client, groups)),
        groups=tuple(id_ for id_, name in groups.items() if name.startswith(GROUP_PREFIXES[0])),
        log_groups=tuple(_log_groups(client("logs"), cluster_name, stacks)),
        pcluster_log_groups=tuple(_named(client("logs"), PCLUSTER_FUNCTIONS)),
        parameters=tuple(_parameters(client("ssm"), cluster_name)),
        pcluster_buckets=tuple(name for name in buckets if PCLUSTER_BUCKET.fullmatch(name)),
    )


def _kept_of(stack: Stack) -> tuple[Resource, ...]:
    return tuple(each for each in stack.resources if each.kept)


def _is_ours(tags: Iterable[dict[str, str]]) -> bool:
    return any(tag["Key"] == "Name" and tag["Value"].startswith(NAME_TAGS) for tag in tags)


def _lustre(fsx: Any, ids: set[str]) -> Iterator[Lustre]:
    for page in fsx.get_paginator("describe_file_systems").paginate():
        for each in page["FileSystems"]:
            id_, lustre = each["FileSystemId"], each.get("LustreConfiguration")
            if lustre and (id_ in ids or _is_ours(each.get("Tags", []))):
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


def _efs(efs: Any, ids: set[str], goes: set[str]) -> Iterator[Efs]:
    for page in efs.get_paginator("describe_file_systems").paginate():
        for each in page["FileSystems"]:
            id_ = each["FileSystemId"]
            if id_ in ids or _is_ours(each.get("Tags", [])):
                targets = efs.describe_mount_targets(FileSystemId=id_)["MountTargets"]
                yield Efs(
                    id=id_,
                    size_bytes=each["SizeInBytes"]["Value"],
                    provisioned_mibps=each.get("ProvisionedThroughputInMibps"),
                    mount_target_ids=tuple({t["MountTargetId"] for t in targets} - goes),
                )


def _buckets(s3: Any) -> list[str]:
    return [each["Name"] for each in s3.list_buckets()["Buckets"]]


def _groups(ec2: Any) -> dict[str, str]:
    """Names of security groups, by id."""
    pages = ec2.get_paginator("describe_security_groups").paginate()
    return {each["GroupId"]: each["GroupName"] for page in pages for each in page["SecurityGroups"]}


def _accounting(client: ClientOf, groups: dict[str, str]) -> Iterator[Resource]:
    """What AccountingStack left, when it is gone."""
    for cluster in client("rds").describe_db_clusters()["DBClusters"]:
        if cluster["DBClusterIdentifier"].startswith(DATABASE_PREFIX):
            for member in cluster.get("DBClusterMembers", []):
                yield Resource(type="AWS::RDS::DBInstance", physical_id=member["DBInstanceIdentifier"])
            yield Resource(type="AWS::RDS::DBCluster", physical_id=cluster["DBClusterIdentifier"])
            yield Resource(type="AWS::RDS::DBSubnetGroup", physical_id=cluster["DBSubnetGroup"])
    for id_, name in groups.items():
        if name.startswith(GROUP_PREFIXES[1]):
            yield Resource(type="AWS::EC2::SecurityGroup", physical_id=id_)
    filters = [{"Name": "tag:Name", "Values": ["AccountingStack/*"]}]
    for subnet in client("ec2").describe_subnets(Filters=filters)["Subnets"]:
        yield Resource(type="AWS::EC2::Subnet", physical_id=subnet["SubnetId"])
    for table in client("ec2").describe_route_tables(Filters=filters)["RouteTables"]:
        yield Resource(type="AWS::EC2::RouteTable", physical_id=table["RouteTableId"])


def _log_groups(logs: Any, cluster_name: str, stacks: dict[str, Stack]) -> Iterator[str]:
    own = cluster_stack_name(cluster_name)
    # "TrainingClusterStack-" is the beginning of another cluster's names, too.
    others = tuple(f"{name}-" for name in stacks if name.startswith(f"{own}-"))
    with_time = re.compile(rf"/aws/parallelcluster/{re.escape(cluster_name)}-\d{{12}}")
    yield from filter(with_time.fullmatch, _named(logs, f"/aws/parallelcluster/{cluster_name}-"))
    for stack in (own, *FOUNDATIONS):
        for prefix in (f"{stack}-", f"/aws/lambda/{stack}-"):
            for name in _named(logs, prefix):
                if not name.removeprefix("/aws/lambda/").startswith(others):
                    yield name


def _named(logs: Any, prefix: str) -> Iterator[str]:
    pages = logs.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=prefix)
    return (each["logGroupName"] for page in pages for each in page["logGroups"])


def _parameters(ssm: Any, cluster_name: str) -> Iterator[str]:
    pages = ssm.get_paginator("get_parameters_by_path").paginate(
        Path=f"/training-cluster/clusters/{cluster_name}", Recursive=True
    )
    return (each["Name"] for page in pages for each in page["Parameters"])
