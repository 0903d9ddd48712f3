"""`make teardown-plan`: what goes, what stays, what it costs, and how to delete the rest."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ops.teardown.left import BUCKET_PREFIX, DATABASE_PREFIX, GROUP_PREFIXES, NAME_TAGS
from ops.teardown.plan import read_plan, render_plan
from tests.unit.fake_account import Account, Refused
from training_cluster.problems import ConfigurationError

ROOT = Path(__file__).resolve().parents[2]
LUSTRE, EFS, BUCKET = "fs-0aaaaaaaaaaaaaaaa", "fs-0eeeeeeeeeeeeeeee", "storagestack-storagebucket5cb7-x1"
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
    "AccountingDatabase": ("AWS::RDS::DBCluster", "accountingstack-accountingdatabase-x", "Retain"),
    "AccountingSubnet1": ("AWS::EC2::Subnet", "subnet-0aaaaaaaaaaaaaaaa", "Retain"),
}
ALL: Stacks = {
    "NetworkStack": NETWORK,
    "StorageStack": STORAGE,
    "TrainingClusterStack": CLUSTER,
    "training": {},
}


def _stack_answers(stacks: Stacks, status: str) -> dict[str, Any]:
    def described(name: str) -> dict[str, Any]:
        return {
            "StackName": name,
            "StackStatus": status,
            "CreationTime": "2026-01-01",
            "EnableTerminationProtection": name in {"StorageStack", "AccountingStack"},
        }

    def describe(asked: dict[str, Any]) -> Any:
        name = asked.get("StackName")
        if name and name not in stacks:
            return Refused("ValidationError", f"Stack with id {name} does not exist")
        return {"Stacks": [described(each) for each in ([name] if name else stacks)]}

    def template(asked: dict[str, Any]) -> Any:
        resources = {
            id_: {"Type": type_} | ({"DeletionPolicy": policy} if policy else {})
            for id_, (type_, _, policy) in stacks[asked["StackName"]].items()
        }
        return {"TemplateBody": json.dumps({"Resources": resources})}

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


def _lustre(id_: str = LUSTRE, name: str = "training-cluster", **configuration: Any) -> dict[str, Any]:
    return {
        "FileSystemId": id_,
        "FileSystemType": "LUSTRE",
        "StorageCapacity": 2400,
        "Tags": [{"Key": "Name", "Value": name}],
        "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125}
        | configuration,
    }


def _efs(id_: str = EFS, name: str = "StorageStack/Storage/Efs", gib: int = 10) -> dict[str, Any]:
    return {
        "OwnerId": "1",
        "CreationToken": "1",
        "CreationTime": "2026-01-01",
        "LifeCycleState": "available",
        "NumberOfMountTargets": 1,
        "PerformanceMode": "generalPurpose",
        "FileSystemId": id_,
        "SizeInBytes": {"Value": gib * 2**30},
        "Tags": [{"Key": "Name", "Value": name}],
    }


def _account(
    stacks: Stacks | None = None,
    *,
    status: str = "CREATE_COMPLETE",
    lustre: list[dict[str, Any]] | None = None,
    efs: list[dict[str, Any]] | None = None,
    buckets: tuple[str, ...] = (),
    groups: dict[str, str] | None = None,
    log_groups: tuple[str, ...] = (),
    nodes: tuple[str, ...] = (),
    databases: tuple[str, ...] = (),
    **answers: Any,
) -> Account:
    link = {"AssociationId": "dra-0aaaaaaaaaaaaaaaa", "FileSystemPath": "/checkpoints"}
    link |= {"DataRepositoryPath": f"s3://{BUCKET}/checkpoints/"}
    links = {LUSTRE: [link | {"S3": {"AutoExportPolicy": {"Events": ["NEW"]}}}]}
    targets = {EFS: [{"MountTargetId": "fsmt-0aaaaaaaaaaaaaaaa", "SubnetId": "subnet-0aaaaaaaaaaaaaaaa"}]}
    instances = [{"Tags": [{"Key": "parallelcluster:node-type", "Value": node}]} for node in nodes]
    found = [{"DBClusterIdentifier": name, "DBSubnetGroup": "subnets"} for name in databases]
    return Account(
        {
            **_stack_answers(stacks or {}, status),
            "ListBuckets": {"Buckets": [{"Name": name} for name in buckets]},
            "DescribeSecurityGroups": {
                "SecurityGroups": [
                    {"GroupId": id_, "GroupName": name} for id_, name in (groups or {}).items()
                ]
            },
            "DescribeInstances": {"Reservations": [{"Instances": instances}]},
            "DescribeVpcEndpoints": {"VpcEndpoints": []},
            "DescribeSubnets": {"Subnets": []},
            "DescribeRouteTables": {"RouteTables": []},
            "DescribeDBClusters": {"DBClusters": found},
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
                    {"logGroupName": name}
                    for name in log_groups
                    if name.startswith(asked["logGroupNamePrefix"])
                ]
            },
            "GetParametersByPath": {"Parameters": []},
            "fsx.DescribeFileSystems": {"FileSystems": lustre or []},
            "efs.DescribeFileSystems": {"FileSystems": efs or []},
            **answers,
        }
    )


def _shown(account: Account, cluster_name: str = "training") -> str:
    return "\n".join(render_plan(read_plan(cluster_name, account.client)))


def _all(**more: Any) -> Account:
    deployed: dict[str, Any] = {"stacks": ALL, "lustre": [_lustre()], "efs": [_efs()], "buckets": (BUCKET,)}
    groups = {"sg-0aaaaaaaaaaaaaaaa": "StorageStack-StorageLustreSecurityGroupC4-x", "sg-1": "default"}
    return _account(**(deployed | {"groups": groups} | more))


def _in_order(shown: str, *parts: str) -> bool:
    found = [shown.find(part) for part in parts]
    return -1 not in found and found == sorted(found)


def test_it_says_what_goes_with_the_cluster() -> None:
    shown = _shown(_all(nodes=("HeadNode", "Compute", "Compute")))
    goes = shown[: shown.index("What stays")]
    assert "npx cdk destroy TrainingClusterStack takes the cluster training" in goes
    assert "training  CREATE_COMPLETE  ParallelCluster's own stack" in goes
    assert "1 head node(s), 2 compute node(s): their jobs end" in goes
    assert "the key pair training-key" in goes
    assert LUSTRE not in goes


def test_it_says_what_stays_and_what_that_costs_by_its_real_size() -> None:
    shown = _shown(_all())
    stays = shown[shown.index("What stays") : shown.index("To delete everything")]
    # 0.05 x 730 h; 2400 GiB x 0.145; 10 GiB x 0.30.
    assert "costs about 388 USD a month" in stays
    assert re.search(r"nat-0a+  NAT gateway and its address +36\b", stays)
    assert re.search(rf"{LUSTRE}  FSx for Lustre, PERSISTENT_2, 2400 GiB, 125 MB/s a TiB +348\b", stays)
    assert re.search(rf"{EFS}  EFS, 10.0 GiB +3\b", stays)
    assert re.search(rf"{BUCKET}  bucket +-  0.023 for each GB in it, old versions too", stays)
    assert "StorageStack  CREATE_COMPLETE, termination protection on" in stays


def test_a_price_that_nobody_confirmed_or_knows_is_marked() -> None:
    faster = _shown(_all(lustre=[_lustre(PerUnitStorageThroughput=250)]))
    assert "504  price unconfirmed" in faster
    other = _shown(_all(lustre=[_lustre(DeploymentType="PERSISTENT_1", PerUnitStorageThroughput=50)]))
    assert "-  price not in the catalog" in other


def test_the_rest_is_deleted_in_the_order_in_which_aws_lets_it_go() -> None:
    shown = _shown(_all())
    assert _in_order(
        shown,
        "npx cdk destroy TrainingClusterStack\n",
        "update-termination-protection --no-enable-termination-protection --stack-name StorageStack",
        "npx cdk destroy StorageStack",
        f"--file-system-id {LUSTRE} --paths checkpoints\n",
        "--no-delete-data-in-file-system --association-id dra-0aaaaaaaaaaaaaaaa",
        f"aws fsx delete-file-system --file-system-id {LUSTRE}",
        f"aws efs delete-file-system --file-system-id {EFS}",
        "aws ec2 delete-security-group --group-id sg-0aaaaaaaaaaaaaaaa",
        f'Bucket("{BUCKET}").object_versions.delete()',
        f"aws s3api delete-bucket --bucket {BUCKET}",
        "npx cdk destroy NetworkStack",
    )
    assert "sg-1" not in shown


def test_a_loud_line_stands_before_each_command_that_deletes_data() -> None:
    lines = _shown(_all()).splitlines()
    for command in ("aws fsx delete-file-system", "aws efs delete-file-system", "s3api delete-bucket"):
        (at,) = (number for number, line in enumerate(lines) if command in line)
        head = max(number for number, line in enumerate(lines[:at]) if line.startswith("# "))
        assert lines[head] == "# THE DATA IS GONE AFTER THIS", command


def test_a_mount_target_is_deleted_by_name_unless_it_goes_with_its_stack() -> None:
    assert "delete-mount-target" not in _shown(_all())
    without = {name: stack for name, stack in ALL.items() if name != "StorageStack"}
    assert "delete-mount-target --mount-target-id fsmt-0aaaaaaaaaaaaaaaa" in _shown(_all(stacks=without))


def test_what_a_deleted_storage_stack_left_is_found_and_can_be_taken_up_again() -> None:
    shown = _shown(_all(stacks={"NetworkStack": NETWORK}))
    assert f"-c bucket_name={BUCKET} -c fsx_id={LUSTRE} -c efs_id={EFS}" in shown
    assert "There is no cluster training here." in shown
    assert "npx cdk destroy StorageStack" not in shown
    assert _in_order(shown, f"--file-system-id {LUSTRE}", f"--file-system-id {EFS}", "destroy NetworkStack")


def test_while_storage_stack_is_there_nothing_is_to_be_taken_up() -> None:
    assert "-c fsx_id=" not in _shown(_all())


def test_what_is_not_ours_is_not_named() -> None:
    others = _all(
        stacks={"NetworkStack": NETWORK, "OtherStack": {"Bucket": ("AWS::S3::Bucket", "theirs", "Retain")}},
        lustre=[_lustre("fs-0ffffffffffffffff", name="theirs")],
        efs=[_efs("fs-0fffffffffffffff0", name="OtherStack/Efs")],
        buckets=("theirs", "cdk-hnb659fds-assets-1-us-east-1"),
        groups={"sg-2": "OtherStack-StorageGroup"},
    )
    shown = _shown(others)
    for theirs in ("fs-0ffffffffffffffff", "fs-0fffffffffffffff0", "theirs", "sg-2", "OtherStack"):
        assert theirs not in shown
    assert others.asked.count("GetTemplate") == 1, "their stack is not looked into"


def test_another_cluster_on_the_same_network_is_named_and_goes_first() -> None:
    shown = _shown(_all(stacks=ALL | {"TrainingClusterStack-b": {}}))
    assert (
        "Another cluster uses the same network and storage: TrainingClusterStack-b  CREATE_COMPLETE" in shown
    )
    assert _in_order(
        shown, "npx cdk destroy TrainingClusterStack -c cluster_name=b", "npx cdk destroy StorageStack"
    )


def test_logs_of_the_cluster_are_named_and_those_of_another_are_not() -> None:
    ours = (
        *("/aws/parallelcluster/training-202611211200", "TrainingClusterStack-ClusterOnEventLog1"),
        *("/aws/lambda/TrainingClusterStack-Provider1", "NetworkStack-FlowLogs1"),
    )
    others = ("/aws/parallelcluster/training-b-202611211200", "TrainingClusterStack-b-ClusterOnEventLog1")
    shared = "/aws/lambda/pcluster-CleanupResources-1"
    bucket = "parallelcluster-0123456789abcdef-v1-do-not-delete"
    stacks = ALL | {"TrainingClusterStack-b": {}}
    shown = _shown(_all(stacks=stacks, log_groups=(*ours, *others, shared), buckets=(BUCKET, bucket)))
    for name in ours:
        assert f"aws logs delete-log-group --log-group-name {name}\n" in shown
    for name in others:
        assert name not in shown
    assert _in_order(shown, "only if there is none any more", shared, f"delete-bucket --bucket {bucket}")


@pytest.mark.parametrize("is_there", [True, False])
def test_the_accounting_database_goes_before_the_network(is_there: bool) -> None:
    stacks = ALL | ({"AccountingStack": ACCOUNTING} if is_there else {})
    shown = _shown(_all(stacks=stacks, databases=("accountingstack-accountingdatabase-x", "theirs")))
    assert ("npx cdk destroy AccountingStack -c accounting=new" in shown) == is_there
    assert _in_order(
        shown,
        "modify-db-cluster --no-deletion-protection",
        "delete-db-cluster --skip-final-snapshot --db-cluster-identifier accountingstack-",
        "aws rds wait db-cluster-deleted",
        "npx cdk destroy NetworkStack",
    )
    assert "accounting database, 0.5 ACU at least" in shown
    assert "theirs" not in shown


def test_a_half_made_deploy_has_a_plan_too() -> None:
    stacks: Stacks = {"NetworkStack": {}, "StorageStack": {}}
    shown = _shown(_account(stacks, status="ROLLBACK_COMPLETE"))
    assert "There is no cluster training here." in shown
    assert _in_order(shown, "--stack-name StorageStack", "destroy StorageStack", "destroy NetworkStack")


def test_with_nothing_left_it_says_so() -> None:
    assert _shown(_account()) == "There is nothing of ours in us-east-1."


def test_it_asks_and_changes_nothing() -> None:
    account = _all()
    _shown(account)
    assert {re.match("[A-Z][a-z]+", name)[0] for name in account.asked} == {"Describe", "List", "Get"}  # type: ignore[index]


def test_a_name_that_no_cluster_can_have_is_refused_before_anything_is_asked() -> None:
    account = _account()
    with pytest.raises(ConfigurationError, match="cluster_name"):
        read_plan("no_such", account.client)
    assert account.asked == []


def test_without_a_region_there_is_one_message_and_no_traceback(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ops", "teardown-plan"],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("teardown-plan: AWS gave no answer: You must specify a region")
    assert "export AWS_REGION=" in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_retained_is_called_in_the_account_as_the_plan_looks_for_it(
    synthesise: Callable[..., Any],
) -> None:
    """CloudFormation's names begin with stack and logical id; CDK's tag Name is the construct's path."""
    for stack, types in {
        "StorageStack": ("AWS::S3::Bucket", "AWS::EC2::SecurityGroup"),
        "AccountingStack": ("AWS::EC2::SecurityGroup", "AWS::RDS::DBCluster"),
    }.items():
        template = synthesise(accounting="new")[stack]
        for type_ in types:
            for logical_id in template.find_resources(type_):
                name = f"{stack}-{logical_id}"
                assert name.startswith(GROUP_PREFIXES)
                assert name.lower().startswith((BUCKET_PREFIX, DATABASE_PREFIX))
    storage = synthesise()["StorageStack"]
    for type_, key in (("AWS::FSx::FileSystem", "Tags"), ("AWS::EFS::FileSystem", "FileSystemTags")):
        for resource in storage.find_resources(type_).values():
            (name,) = (tag["Value"] for tag in resource["Properties"][key] if tag["Key"] == "Name")
            assert name.startswith(NAME_TAGS)
