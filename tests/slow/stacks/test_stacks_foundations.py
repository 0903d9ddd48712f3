"""NetworkStack and StorageStack on a local AWS: zone and data stay, or a deploy is refused. In order."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from rehearsal.problems import RehearsalError
from tests.slow.conftest import Cloud
from training_cluster.flags.account import CLUSTER_TAG, SHARED

pytestmark = pytest.mark.slow

NETWORK, STORAGE = "TrainingCluster-Network", "TrainingCluster-Storage"
RESOURCE_TYPE = "Custom::ComputeZone"
# trn1.32xlarge: az4, az5 and az6 of us-east-1; its head node c5.4xlarge is in all but az3.
ZONE_ID, ZONE_NAME = "use1-az4", "us-east-1d"
GROWN = ("fsx_gib=2400",)
FASTER = ("fsx_mbps_per_tib=1000", "efs_mibps=100", "home=efs")


def _deploy(cloud: Cloud, stack: str, *flags: str) -> None:
    """Run `cdk deploy STACK`. Raises RehearsalError if it fails."""
    context = [part for flag in flags for part in ("-c", flag)]
    options = ("--require-approval", "never", *context)
    cloud.cdk.run("deploy", stack, *options, output=cloud.folder / "cdk.out")


def _outputs(cloud: Cloud, name: str) -> dict[str, str]:
    stack = cloud.stack(name)
    assert stack
    return {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}


def _failures(cloud: Cloud, name: str) -> Sequence[str]:
    """Read the reasons of failed resources, oldest first."""
    pages = cloud.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=name)
    events = [event for page in pages for event in page["StackEvents"]]
    return [
        each["ResourceStatusReason"] for each in events[::-1] if each["ResourceStatus"].endswith("_FAILED")
    ]


def _zones(cloud: Cloud) -> set[str]:
    """Return the zones of the network's subnets."""
    vpc = _outputs(cloud, NETWORK)["VpcId"]
    found = cloud.client("ec2").describe_subnets(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["Subnets"]
    return {each["AvailabilityZone"] for each in found}


def _data(cloud: Cloud) -> dict[str, Any]:
    """List everything that holds data, and the access to it."""
    fsx, efs, s3 = (cloud.client(name) for name in ("fsx", "efs", "s3"))
    systems = [each["FileSystemId"] for each in efs.describe_file_systems()["FileSystems"]]
    targets = [t for id_ in systems for t in efs.describe_mount_targets(FileSystemId=id_)["MountTargets"]]
    return {
        "lustre": [each["FileSystemId"] for each in fsx.describe_file_systems()["FileSystems"]],
        "associations": fsx.describe_data_repository_associations()["Associations"],
        "efs": systems,
        "mount targets": [each["MountTargetId"] for each in targets],
        "buckets": [
            b["Name"] for b in s3.list_buckets()["Buckets"] if b["Name"].startswith("trainingcluster-storage")
        ],
    }


def _refused(cloud: Cloud, *flags: str) -> str:
    """Deploy storage that must fail and be rolled back, with all data as before; return the reason."""
    before, seen = _data(cloud), len(_failures(cloud, STORAGE))
    with pytest.raises(RehearsalError):
        _deploy(cloud, "StorageStack", *flags)
    stack = cloud.stack(STORAGE)
    assert stack and stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert _data(cloud) == before
    first, *others = _failures(cloud, STORAGE)[seen:]
    assert not others, "nothing failed but what refused it"
    return first


def _delete(cloud: Cloud, name: str) -> None:
    cloudformation = cloud.client("cloudformation")
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


def _create(cloud: Cloud, name: str, template: dict[str, Any]) -> None:
    cloudformation = cloud.client("cloudformation")
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(template))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


def _lustre(cloud: Cloud) -> dict[str, Any]:
    (system,) = cloud.client("fsx").describe_file_systems()["FileSystems"]
    found: dict[str, Any] = system
    return found


def test_another_apps_stack_is_not_taken_over(cloud: Cloud) -> None:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "theirs"}}
    _create(cloud, NETWORK, {"Resources": {"Data": bucket}})
    with pytest.raises(RehearsalError):
        _deploy(cloud, "NetworkStack", "family=trn1")
    said = f"Nothing was deleted. A stack {NETWORK} existed"
    assert any(said in each for each in _failures(cloud, NETWORK))
    assert [each["Name"] for each in cloud.client("s3").list_buckets()["Buckets"]].count("theirs") == 1
    assert [each["IsDefault"] for each in cloud.client("ec2").describe_vpcs()["Vpcs"]] == [True]
    _delete(cloud, NETWORK)


def test_network_and_storage_are_one_deploy(cloud: Cloud) -> None:
    """In the first zone that offers the family."""
    _deploy(cloud, "StorageStack", "family=trn1")
    outputs = _outputs(cloud, NETWORK)
    assert _zones(cloud) == {ZONE_NAME}
    assert (outputs["ZoneId"], outputs["ZoneName"]) == (ZONE_ID, ZONE_NAME)
    assert outputs["OtherZoneName"] == "us-east-1b", "of use1-az1, the first beside it"
    assert {name: len(found) for name, found in _data(cloud).items()} == {
        **{"lustre": 1, "associations": 2, "efs": 1, "mount targets": 1, "buckets": 1},
    }
    (flow_log,) = cloud.client("ec2").describe_flow_logs()["FlowLogs"]
    assert (flow_log["ResourceId"], flow_log["TrafficType"]) == (outputs["VpcId"], "ALL")


def test_a_destroy_plan_names_what_was_made(cloud: Cloud) -> None:
    made = _outputs(cloud, STORAGE)
    done = cloud.trainctl("destroy", "--plan")
    assert done.returncode == 0, done.stderr
    assert "There is no cluster training here." in done.stdout
    assert f"{made['FileSystemId']}  FSx for Lustre, PERSISTENT_2, 1200 GiB, 250 MB/s a TiB" in done.stdout
    places = [
        done.stdout.find(command)
        for command in (
            "--no-enable-termination-protection --stack-name TrainingCluster-Storage",
            "npx cdk destroy StorageStack",
            "aws fsx delete-data-repository-association",
            f"aws fsx delete-file-system --file-system-id {made['FileSystemId']}",
            f"aws efs delete-file-system --file-system-id {made['EfsId']}",
            "aws ec2 delete-security-group",
            f"aws s3api delete-bucket --bucket {made['BucketName']}",
            "npx cdk destroy NetworkStack",
        )
    ]
    assert places == sorted(places)
    assert -1 not in places


def test_a_family_that_the_zone_lacks_is_refused(cloud: Cloud) -> None:
    before = _outputs(cloud, NETWORK)
    with pytest.raises(RehearsalError):
        _deploy(cloud, "NetworkStack", "family=p5en")
    stack = cloud.stack(NETWORK)
    assert stack and stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert (_outputs(cloud, NETWORK), _zones(cloud)) == (before, {ZONE_NAME})
    reason = _failures(cloud, NETWORK)[-1]
    assert f"stays in {ZONE_ID} ({ZONE_NAME}) for good, and that zone does not offer p5en.48xlarge." in reason
    assert "c5.4xlarge, p5en.48xlarge: use1-az2 (us-east-1c), use1-az6 (us-east-1a)." in reason


def test_another_family_keeps_the_zone(cloud: Cloud) -> None:
    before = _outputs(cloud, NETWORK)
    _deploy(cloud, "NetworkStack", "endpoints=private")  # p4d's first zone would be another one
    assert (_outputs(cloud, NETWORK), _zones(cloud)) == (before, {ZONE_NAME})
    endpoints = cloud.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
    assert {"ec2", "ssmmessages"} < {each["ServiceName"].rpartition(".")[2] for each in endpoints}
    with pytest.raises(RehearsalError):
        _deploy(cloud, "NetworkStack")
    assert "endpoints: private -> none was not asked for" in _failures(cloud, NETWORK)[-1]
    _deploy(cloud, "NetworkStack", "endpoints=")


def test_what_would_replace_data_is_refused(cloud: Cloud) -> None:
    before = _lustre(cloud)
    reason = _refused(cloud, "fsx_type=scratch2", "bucket_name=mine")
    for words in (
        "fsx_type: persistent2 -> scratch2",
        "Keep -c fsx_type=persistent2",
        "bucket_name: (own) -> mine",
        "leave bucket_name as it was",
        "Nothing was changed",
    ):
        assert words in reason
    assert _lustre(cloud) == before


def test_what_can_change_in_place_does(cloud: Cloud) -> None:
    before = _data(cloud)
    _deploy(cloud, "StorageStack", *GROWN)
    _deploy(cloud, "StorageStack", *GROWN, FASTER[0])  # the guard takes one change of Lustre at a time
    _deploy(cloud, "StorageStack", *GROWN, *FASTER)
    assert _data(cloud) == before
    system = _lustre(cloud)
    assert system["StorageCapacity"] == 2400
    assert system["LustreConfiguration"]["PerUnitStorageThroughput"] == 1000
    (home,) = cloud.client("efs").describe_file_systems()["FileSystems"]
    assert (home["ThroughputMode"], home["ProvisionedThroughputInMibps"]) == ("provisioned", 100.0)


def test_another_file_system_is_refused_while_used(cloud: Cloud) -> None:
    """The guard lets an id be given; CloudFormation, at the end, refuses to change an export in use."""
    uses = {
        "Resources": {"Nothing": {"Type": "AWS::CloudFormation::WaitConditionHandle"}},
        "Outputs": {"Id": {"Value": {"Fn::ImportValue": f"{STORAGE}:FileSystemId"}}},
    }
    _create(cloud, "User", uses)
    fsx, outputs = cloud.client("fsx"), _outputs(cloud, STORAGE)
    other = fsx.create_file_system(
        FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=_lustre(cloud)["SubnetIds"]
    )["FileSystem"]["FileSystemId"]
    reason = _refused(cloud, f"fsx_id={other}", "efs_mibps=100")
    assert f"Export {STORAGE}:FileSystemId cannot be updated as it is in use by User" in reason
    assert _outputs(cloud, STORAGE) == outputs
    fsx.delete_file_system(FileSystemId=other)
    _delete(cloud, "User")


def test_a_new_stack_takes_a_deleted_ones_data(cloud: Cloud) -> None:
    before, outputs = _data(cloud), _outputs(cloud, STORAGE)
    cloud.client("cloudformation").update_termination_protection(
        StackName=STORAGE, EnableTerminationProtection=False
    )
    _delete(cloud, STORAGE)
    assert cloud.stack(NETWORK), "the file systems stand in it"
    assert _data(cloud) == before
    names = {"bucket_name": "BucketName", "fsx_id": "FileSystemId", "efs_id": "EfsId"}
    flags = bucket, lustre, efs = [f"{flag}={outputs[output]}" for flag, output in names.items()]
    _find_by_tag(cloud, outputs["BucketName"], flags)
    _deploy(cloud, "StorageStack", *flags)
    stack = cloud.stack(STORAGE)
    assert stack and stack["EnableTerminationProtection"] is True
    assert (_outputs(cloud, STORAGE), _data(cloud)) == (outputs, before)
    # An id that is forgotten makes no empty file system in the place of the full one.
    reason = _refused(cloud, bucket, efs)
    assert f"fsx_id: {outputs['FileSystemId']} -> (own) would replace it with a new, empty one" in reason
    assert f"Type -c {lustre}" in reason


def _find_by_tag(cloud: Cloud, bucket: str, flags: Sequence[str]) -> None:
    """See that a plan finds the data of a deleted stack, and that preflight accepts it as one's own."""
    # ministack drops the tags that a template gives a bucket; that it does is tested in
    # tests/unit/ops/teardown/test_remaining.py.
    tags = {"TagSet": [{"Key": CLUSTER_TAG, "Value": SHARED}]}
    cloud.client("s3").put_bucket_tagging(Bucket=bucket, Tagging=tags)
    context = [word for flag in flags for word in ("-c", flag)]
    done = cloud.trainctl("destroy", "--plan")
    assert done.returncode == 0, done.stderr
    assert " ".join(context) in done.stdout
    assert "aws ec2 delete-security-group" in done.stdout
    assert "npx cdk destroy StorageStack" not in done.stdout
    done = cloud.trainctl("preflight", "--json", *context)
    found = {each["check"]: each["verdict"] for each in json.loads(done.stdout)["findings"]}
    assert found["Lustre: open to the nodes on 988, 1018-1023"] == "ok"
