"""Permissions of the provider for keys of a cluster config that only a file of overrides sets.

These keys make ParallelCluster put resource types into its template (`managed_types`), for which
permissions.tsv has the actions; `grants` are those for what a key names, and for the library's own calls
(pcluster/aws). A cluster without such keys has a policy without them. None was tried on AWS.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from aws_cdk import Aws, Token
from aws_cdk.aws_iam import PolicyStatement

from training_cluster.overrides.merge import texts
from training_cluster.overrides.nodes import node_policies, placement_groups
from training_cluster.overrides.storage import managed_storage, queue_subnets

Config = Mapping[str, Any]
_BUCKET = re.compile(r"^s3://([^/]+)")


def _in_region(service: str, resource: str) -> str:
    return f"arn:{Aws.PARTITION}:{service}:{Aws.REGION}:{Aws.ACCOUNT_ID}:{resource}"


_GROUP = ("AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress", "AWS::EC2::SecurityGroupEgress")
# Types in ParallelCluster's template by what makes it add them. By hand: its schema has no types, code picks
# them (pcluster/templates/cluster_stack.py); test_judged_calls.py demands each that this code can pick.
_TYPES = {
    "Ebs": ("AWS::EC2::Volume",),
    "Efs": ("AWS::EFS::FileSystem", "AWS::EFS::MountTarget", *_GROUP),
    "FsxLustre": ("AWS::FSx::FileSystem", *_GROUP),
    "DataRepositoryAssociations": ("AWS::FSx::DataRepositoryAssociation",),
    "ElasticIp": ("AWS::EC2::EIP", "AWS::EC2::EIPAssociation"),
    "PlacementGroup": ("AWS::EC2::PlacementGroup",),
}
MANAGED_TYPES = frozenset(name for names in _TYPES.values() for name in names)
"""Resource types that only some keys put into a cluster's template."""
_KEY = ("DescribeKey", "CreateGrant", "Decrypt", "GenerateDataKeyWithoutPlaintext", "ReEncrypt*")
_READ = {
    "BackupId": ("fsx:DescribeBackups",),  # FsxBackupIdValidator
    "FsxOpenZfs": ("fsx:DescribeVolumes",),
    "FsxOntap": ("fsx:DescribeVolumes", "fsx:DescribeStorageVirtualMachines"),
    "FileCache": ("fsx:DescribeFileCaches", "fsx:DescribeDataRepositoryAssociations"),
}
_BUCKET_OF_FSX = ["s3:Get*", "s3:List*", "s3:PutObject"]
_LIBRARY_BUCKET = [
    *("s3:GetObject*", "s3:PutObject*", "s3:DeleteObject*", "s3:GetBucket*", "s3:PutBucketPolicy"),
    *("s3:ListBucket", "s3:ListBucketVersions", "s3:GetEncryptionConfiguration"),
]
_ROLES = (".LambdaFunctionsRole", ".InstanceRole")
VPC_ACCESS = f"arn:{Aws.PARTITION}:iam::aws:policy/service-role/AWSLambdaVPCAccessExecutionRole"


def grants(config: Config) -> Iterator[PolicyStatement]:
    """Yield what the provider needs for the keys of a config that flags do not set."""
    yield from _storage(config)
    keys = dict(texts(config))
    secrets = {value for path, value in keys.items() if path.endswith("SecretArn") and "Database" not in path}
    if named := _sorted(each for each in secrets if ":secretsmanager:" in each):
        yield PolicyStatement(sid="OwnSecrets", actions=["secretsmanager:DescribeSecret"], resources=named)
    if munge := _sorted(value for path, value in keys.items() if path.endswith("MungeKeySecretArn")):
        # MungeKeySecretSizeAndBase64Validator reads the key.
        yield PolicyStatement(sid="OwnMungeKey", actions=["secretsmanager:GetSecretValue"], resources=munge)
    if of_kms := _sorted(value for path, value in keys.items() if path.endswith("KmsKeyId")):
        arns = [each if each.startswith("arn:") else _in_region("kms", f"key/{each}") for each in of_kms]
        yield PolicyStatement(sid="OwnKeys", actions=[f"kms:{each}" for each in _KEY], resources=arns)
    if roles := _sorted(value for path, value in keys.items() if path.endswith(_ROLES)):
        yield PolicyStatement(sid="PassOwnRoles", actions=["iam:PassRole", "iam:GetRole"], resources=roles)
    if bucket := keys.get("CustomS3Bucket"):
        arn = f"arn:{Aws.PARTITION}:s3:::{bucket}"
        yield PolicyStatement(sid="OwnLibraryBucket", actions=_LIBRARY_BUCKET, resources=[arn, f"{arn}/*"])


def managed_types(config: Config) -> frozenset[str]:
    """Return the resource types that keys of a config put into the template that ParallelCluster makes."""
    head, managed = config.get("HeadNode", {}), list(managed_storage(config))
    added = {each.kind for each in managed}
    added |= {key for each in managed for key in each.settings if key in _TYPES}
    if str(head.get("SharedStorageType")).lower() == "efs":
        added.add("Efs")
    if head.get("Networking", {}).get("ElasticIp"):
        added.add("ElasticIp")
    if any(each.get("Enabled") and not each.get("Name") for each in placement_groups(config)):
        added.add("PlacementGroup")
    return frozenset(name for each in added for name in _TYPES[each])


def attachable(config: Config) -> tuple[str, ...]:
    """Return ARNs of the user's policies of nodes, and of AWS's that keys of overrides need."""
    given = tuple(each for each in node_policies(config) if not Token.is_unresolved(each))
    needed = (VPC_ACCESS,) if "LambdaFunctionsVpcConfig" in config.get("DeploymentSettings", {}) else ()
    return (*given, *needed)


def _storage(config: Config) -> Iterator[PolicyStatement]:
    managed = list(managed_storage(config))
    yield from _buckets_of_lustre([each.settings for each in managed if each.kind == "FsxLustre"])
    types = {str(each.get("StorageType")) for each in config.get("SharedStorage", [])}
    kinds = types | {key for each in managed for key in each.settings if key in _READ}
    if reads := _sorted(action for kind in kinds for action in _READ.get(kind, ())):
        yield PolicyStatement(sid="OwnFileSystems", actions=reads, resources=[_in_region("fsx", "*")])
    # EfsIdValidator asks for the storage class where nodes are in several zones.
    if "Efs" in types and len(queue_subnets(config)) > 1:
        read = ["elasticfilesystem:DescribeFileSystems"]
        yield PolicyStatement(
            sid="EfsInZones", actions=read, resources=[_in_region("elasticfilesystem", "*")]
        )


def _buckets_of_lustre(settings: list[Config]) -> Iterator[PolicyStatement]:
    paths = [value for each in settings for path, value in texts(each)]
    buckets = _sorted(found[1] for value in paths if (found := _BUCKET.match(value)))
    if buckets:
        arns = [f"arn:{Aws.PARTITION}:s3:::{each}" for each in buckets]
        both = [arn for each in arns for arn in (each, f"{each}/*")]
        role = "role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/*"
        linked = [f"arn:{Aws.PARTITION}:iam::{Aws.ACCOUNT_ID}:{role}"]
        yield PolicyStatement(sid="BucketsOfLustre", actions=_BUCKET_OF_FSX, resources=both)
        actions = ["iam:CreateServiceLinkedRole", "iam:AttachRolePolicy", "iam:PutRolePolicy"]
        yield PolicyStatement(sid="RoleOfLustre", actions=actions, resources=linked)


def _sorted(values: Iterator[str]) -> list[str]:
    return sorted(set(values))
