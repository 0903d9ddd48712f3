"""NetworkStack and StorageStack on a local AWS: the zone stays, storage changes in place. In order.

`make faults` shows what the guards refuse, and that the ways in their refusals lead on.
"""

import json
from typing import Any

import pytest

from rehearsal.problems import RehearsalError
from tests.slow.conftest import Cloud

pytestmark = pytest.mark.slow

NETWORK = "TrainingCluster-Network"
# trn1.32xlarge: az4, az5 and az6 of us-east-1; its head node c5.4xlarge is in all but az3.
ZONE_ID, ZONE_NAME = "use1-az4", "us-east-1d"
GROWN = ("fsx_gib=2400",)
FASTER = ("fsx_mbps_per_tib=1000", "efs_mibps=100", "home=efs")


def _zones(cloud: Cloud) -> set[str]:
    """Return the zones of the network's subnets."""
    vpc = cloud.outputs(NETWORK)["VpcId"]
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


def test_another_apps_stack_is_not_taken_over(cloud: Cloud) -> None:
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "theirs"}}
    cloudformation, delay = cloud.client("cloudformation"), {"Delay": 1}
    template = json.dumps({"Resources": {"Data": bucket}})
    cloudformation.create_stack(StackName=NETWORK, TemplateBody=template)
    cloudformation.get_waiter("stack_create_complete").wait(StackName=NETWORK, WaiterConfig=delay)
    with pytest.raises(RehearsalError):
        cloud.deploy("family=trn1", stack="NetworkStack")
    said = f"Nothing was deleted. A stack {NETWORK} existed"
    assert any(said in each for each in cloud.reasons(NETWORK))
    assert [each["Name"] for each in cloud.client("s3").list_buckets()["Buckets"]].count("theirs") == 1
    assert [each["IsDefault"] for each in cloud.client("ec2").describe_vpcs()["Vpcs"]] == [True]
    cloudformation.delete_stack(StackName=NETWORK)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=NETWORK, WaiterConfig=delay)


def test_network_and_storage_are_one_deploy(cloud: Cloud) -> None:
    """In the first zone that offers the family."""
    cloud.deploy("family=trn1", stack="StorageStack")
    outputs = cloud.outputs(NETWORK)
    assert (_zones(cloud), outputs["ZoneId"], outputs["ZoneName"]) == ({ZONE_NAME}, ZONE_ID, ZONE_NAME)
    assert outputs["OtherZoneName"] == "us-east-1b", "of use1-az1, the first beside it"
    assert {name: len(found) for name, found in _data(cloud).items()} == {
        **{"lustre": 1, "associations": 2, "efs": 1, "mount targets": 1, "buckets": 1}
    }
    (flow_log,) = cloud.client("ec2").describe_flow_logs()["FlowLogs"]
    assert (flow_log["ResourceId"], flow_log["TrafficType"]) == (outputs["VpcId"], "ALL")


def test_a_family_that_the_zone_lacks_is_refused(cloud: Cloud) -> None:
    before = cloud.outputs(NETWORK)
    with pytest.raises(RehearsalError):
        cloud.deploy("family=p5en", stack="NetworkStack")
    stack = cloud.stack(NETWORK)
    assert stack and stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert (cloud.outputs(NETWORK), _zones(cloud)) == (before, {ZONE_NAME})
    reason = cloud.reasons(NETWORK)[0]
    assert f"stays in {ZONE_ID} ({ZONE_NAME}) for good, and that zone does not offer p5en.48xlarge." in reason
    assert "c5.4xlarge, p5en.48xlarge: use1-az2 (us-east-1c), use1-az6 (us-east-1a)." in reason


def test_another_family_keeps_the_zone(cloud: Cloud) -> None:
    before = cloud.outputs(NETWORK)
    cloud.deploy("endpoints=private", stack="NetworkStack")  # p4d's first zone would be another one
    assert (cloud.outputs(NETWORK), _zones(cloud)) == (before, {ZONE_NAME})
    endpoints = cloud.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
    assert {"ec2", "ssmmessages"} < {each["ServiceName"].rpartition(".")[2] for each in endpoints}
    cloud.deploy("endpoints=", stack="NetworkStack")


def test_what_can_change_in_place_does(cloud: Cloud) -> None:
    before = _data(cloud)
    cloud.deploy(*GROWN, stack="StorageStack")
    cloud.deploy(*GROWN, FASTER[0], stack="StorageStack")  # the guard takes one change of Lustre at a time
    cloud.deploy(*GROWN, *FASTER, stack="StorageStack")
    assert _data(cloud) == before
    (system,) = cloud.client("fsx").describe_file_systems()["FileSystems"]
    assert system["StorageCapacity"] == 2400
    assert system["LustreConfiguration"]["PerUnitStorageThroughput"] == 1000
    (home,) = cloud.client("efs").describe_file_systems()["FileSystems"]
    assert (home["ThroughputMode"], home["ProvisionedThroughputInMibps"]) == ("provisioned", 100.0)
