"""An account in which everything of ours is deployed or left, for `trainctl destroy --plan`."""

import json
from typing import Any

from ops.account.stacks import DESCRIPTION
from ops.teardown.plan import read_plan, render_plan
from tests.unit.ops.fake_account import Account, Refused
from training_cluster.flags.account import CLUSTER_TAG, SHARED

LUSTRE, EFS, BUCKET = (
    "fs-0aaaaaaaaaaaaaaaa",
    "fs-0eeeeeeeeeeeeeeee",
    "trainingcluster-storage-storagebucket5cb7-x1",
)
OURS, THEIRS = [{"Key": CLUSTER_TAG, "Value": SHARED}], [{"Key": "Name", "Value": "training-cluster"}]
Tags = list[dict[str, str]]
Resources = dict[str, tuple[str, str, str | None]]
Stacks = dict[str, Resources]
NETWORK: Resources = {
    "NetworkVpc7F": ("AWS::EC2::VPC", "vpc-0aaaaaaaaaaaaaaaa", None),
    "NetworkVpcPublicSubnet1NATGateway64": ("AWS::EC2::NatGateway", "nat-0aaaaaaaaaaaaaaaa", None),
}
STORAGE: Resources = {
    "StorageBucket5C": ("AWS::S3::Bucket", BUCKET, "RetainExceptOnCreate"),
    "StorageLustreD5": ("AWS::FSx::FileSystem", LUSTRE, "RetainExceptOnCreate"),
    "StorageLustreSecurityGroupC4": ("AWS::EC2::SecurityGroup", "sg-0aaaaaaaaaaaaaaaa", "Retain"),
    "StorageEfs3F": ("AWS::EFS::FileSystem", EFS, "RetainExceptOnCreate"),
    "StorageEfsMountTarget": ("AWS::EFS::MountTarget", "fsmt-0aaaaaaaaaaaaaaaa", None),
}
CLUSTER: Resources = {"KeyPair16": ("AWS::EC2::KeyPair", "training-key", None)}
ACCOUNTING: Resources = {
    "AccountingDatabaseWriter": ("AWS::RDS::DBInstance", "writer", "Retain"),
    "AccountingDatabase": (
        "AWS::RDS::DBCluster",
        "trainingcluster-accounting-accountingdatabase-x",
        "Retain",
    ),
    "AccountingSubnet1": ("AWS::EC2::Subnet", "subnet-0aaaaaaaaaaaaaaaa", "Retain"),
}
ALL: Stacks = {
    "TrainingCluster-Network": NETWORK,
    "TrainingCluster-Storage": STORAGE,
    "TrainingClusterStack": CLUSTER,
    "training": {},
}


def _stack_answers(stacks: Stacks, status: str, foreign: tuple[str, ...]) -> dict[str, Any]:
    def described(name: str) -> dict[str, Any]:
        return {
            "StackName": name,
            "StackStatus": status,
            "CreationTime": "2026-01-01",
            "EnableTerminationProtection": name in {"TrainingCluster-Storage", "TrainingCluster-Accounting"},
        }

    def describe(asked: dict[str, Any]) -> Any:
        name = asked.get("StackName")
        if name and name not in stacks:
            return Refused("ValidationError", f"Stack with id {name} does not exist")
        return {"Stacks": [described(each) for each in ([name] if name else stacks)]}

    def template(asked: dict[str, Any]) -> Any:
        if asked["StackName"] not in stacks:
            return Refused("ValidationError", f"Stack with id {asked['StackName']} does not exist")
        resources = {
            id_: {"Type": type_} | ({"DeletionPolicy": policy} if policy else {})
            for id_, (type_, _, policy) in stacks[asked["StackName"]].items()
        }
        name = asked["StackName"]
        assert name != "OtherStack", "their stack is looked into"
        if name in foreign:
            return {"TemplateBody": "Description: their network\nResources: {}\n"}
        return {"TemplateBody": json.dumps({"Description": f"{DESCRIPTION} it", "Resources": resources})}

    def resources(asked: dict[str, Any]) -> Any:
        return {
            "StackResourceSummaries": [
                {
                    "LogicalResourceId": id_,
                    "PhysicalResourceId": physical_id,
                    "ResourceType": type_,
                    "ResourceStatus": "CREATE_COMPLETE",
                    "LastUpdatedTimestamp": "2026-01-01",
                }
                for id_, (type_, physical_id, _) in stacks[asked["StackName"]].items()
            ]
        }

    return {"DescribeStacks": describe, "GetTemplate": template, "ListStackResources": resources}


def lustre_system(id_: str = LUSTRE, tags: Tags = OURS, **configuration: Any) -> dict[str, Any]:
    return {
        "FileSystemId": id_,
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 2400,
        "Tags": tags,
        "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}
        | configuration,
    }


def efs_system(id_: str = EFS, tags: Tags = OURS, gib: int = 10) -> dict[str, Any]:
    return {
        "OwnerId": "1",
        "CreationToken": "1",
        "CreationTime": "2026-01-01",
        "LifeCycleState": "available",
        "NumberOfMountTargets": 1,
        "PerformanceMode": "generalPurpose",
        "FileSystemId": id_,
        "SizeInBytes": {"Value": gib * 2**30},
        "Tags": tags,
    }


def account_with(
    stacks: Stacks | None = None,
    *,
    status: str = "CREATE_COMPLETE",
    lustre: list[dict[str, Any]] | None = None,
    efs: list[dict[str, Any]] | None = None,
    buckets: tuple[str, ...] = (),
    groups: dict[str, str] | None = None,
    log_groups: tuple[str, ...] = (),
    theirs: tuple[str, ...] = (),
    foreign: tuple[str, ...] = (),
    nodes: tuple[str, ...] = (),
    databases: tuple[str, ...] = (),
    **answers: Any,
) -> Account:
    link = {"AssociationId": "dra-0aaaaaaaaaaaaaaaa", "FileSystemPath": "/checkpoints"}
    link |= {"DataRepositoryPath": f"s3://{BUCKET}/checkpoints/"}
    links = {LUSTRE: [link | {"S3": {"AutoExportPolicy": {"Events": ["NEW"]}}}]}
    targets = {EFS: [{"MountTargetId": "fsmt-0aaaaaaaaaaaaaaaa", "SubnetId": "subnet-0aaaaaaaaaaaaaaaa"}]}
    instances = [{"Tags": [{"Key": "parallelcluster:node-type", "Value": node}]} for node in nodes]
    endpoint = {"Endpoint": "db.cluster-x.us-east-1.rds.amazonaws.com", "Port": 3306}

    def tags(name: str) -> Tags:
        return THEIRS if name in theirs else OURS

    def tagging(asked: dict[str, Any]) -> Any:
        return Refused("NoSuchTagSet") if asked["Bucket"] in theirs else {"TagSet": OURS}

    def regional(asked: dict[str, Any]) -> Any:
        assert asked["BucketRegion"] == "us-east-1"
        return {"Buckets": [{"Name": name} for name in buckets]}

    found = [{"DBClusterIdentifier": name, "TagList": tags(name)} | endpoint for name in databases]
    return Account(
        {
            **_stack_answers(stacks or {}, status, foreign),
            "ListBuckets": regional,
            "GetBucketTagging": tagging,
            "DescribeSecurityGroups": {
                "SecurityGroups": [
                    {"GroupId": id_, "GroupName": name, "Tags": tags(id_)}
                    for id_, name in (groups or {}).items()
                ]
            },
            "DescribeInstances": {"Reservations": [{"Instances": instances}]},
            "DescribeVpcEndpoints": {"VpcEndpoints": []},
            "DescribeSubnets": {"Subnets": []},
            "DescribeRouteTables": {"RouteTables": []},
            "DescribeDBClusters": {"DBClusters": found},
            "DescribeDBSubnetGroups": {"DBSubnetGroups": []},
            "DescribeDBClusterParameterGroups": {"DBClusterParameterGroups": []},
            "ListSecrets": {"SecretList": []},
            "logs.ListTagsForResource": lambda asked: {
                "tags": {} if asked["resourceArn"].rpartition(":")[2] in theirs else {CLUSTER_TAG: SHARED}
            },
            "DescribeDataRepositoryAssociations": lambda asked: {
                "Associations": links.get(asked["Filters"][0]["Values"][0], [])
            },
            "DescribeMountTargets": lambda asked: {
                "MountTargets": [
                    {**each, "FileSystemId": EFS, "LifeCycleState": "available"}
                    for each in targets.get(asked["FileSystemId"], [])
                ]
            },
            "DescribeLogGroups": lambda asked: {
                "logGroups": [
                    {"logGroupName": name, "arn": f"arn:aws:logs:us-east-1:1:log-group:{name}:*"}
                    for name in log_groups
                    if name.startswith(asked["logGroupNamePrefix"])
                ]
            },
            "GetParametersByPath": {"Parameters": []},
            "DescribeImages": {"Images": []},
            "ListImages": {"imageVersionList": []},
            "ListImageRecipes": {"imageRecipeSummaryList": []},
            "ListComponents": {"componentVersionList": []},
            "fsx.DescribeFileSystems": {"FileSystems": lustre or []},
            "efs.DescribeFileSystems": {"FileSystems": efs or []},
            **answers,
        }
    )


def shown_plan(account: Account, cluster_name: str = "training") -> str:
    return "\n".join(render_plan(read_plan(cluster_name, account.client)))


def everything(**more: Any) -> Account:
    deployed: dict[str, Any] = {
        "stacks": ALL,
        "lustre": [lustre_system()],
        "efs": [efs_system()],
        "buckets": (BUCKET,),
    }
    groups = {
        "sg-0aaaaaaaaaaaaaaaa": "TrainingCluster-Storage-StorageLustreSecurityGroupC4-x",
        "sg-1": "default",
    }
    return account_with(**(deployed | {"groups": groups} | more))


def in_order(shown: str, *parts: str) -> bool:
    found = [shown.find(part) for part in parts]
    return -1 not in found and found == sorted(found)
