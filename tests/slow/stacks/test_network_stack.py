"""The network's zone as it is really deployed: chosen once, kept, and refused to those it cannot serve.

In order, on one local AWS, which has EC2's own data of what each zone offers. NetworkStack alone.
"""

import json
from typing import Any

import pytest

from rehearsal.problems import RehearsalError
from tests.slow.conftest import Cloud

pytestmark = pytest.mark.slow

RESOURCE_TYPE = "Custom::ComputeZone"
# trn1.32xlarge: az4, az5 and az6 of us-east-1; its head node c5.4xlarge is in all but az3.
ZONE_ID, ZONE_NAME = "use1-az4", "us-east-1d"
OTHER_ZONE_NAME = "us-east-1b"
"""Of use1-az1, the first beside it."""


def _deploy(cloud: Cloud, *flags: str) -> None:
    context = [part for flag in flags for part in ("-c", flag)]
    deploy = ("deploy", "NetworkStack", "--require-approval", "never")
    cloud.cdk.run(*deploy, *context, output=cloud.folder / "cdk.out")


def _subnets(cloud: Cloud) -> dict[str, str]:
    """Return the zone of each subnet of the deployed network."""
    found = cloud.client("ec2").describe_subnets(
        Filters=[{"Name": "vpc-id", "Values": [_outputs(cloud)["VpcId"]]}]
    )
    return {each["SubnetId"]: each["AvailabilityZone"] for each in found["Subnets"]}


def _outputs(cloud: Cloud) -> dict[str, str]:
    stack = cloud.stack("TrainingCluster-Network")
    assert stack
    return {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}


def _zone_resource(cloud: Cloud) -> dict[str, Any]:
    resources = cloud.client("cloudformation").describe_stack_resources(StackName="TrainingCluster-Network")
    (found,) = (each for each in resources["StackResources"] if each["ResourceType"] == RESOURCE_TYPE)
    return dict(found)


def test_a_stack_of_another_app_by_our_name_is_not_taken_over(cloud: Cloud) -> None:
    cloudformation, name = cloud.client("cloudformation"), "TrainingCluster-Network"
    theirs = {"Resources": {"Data": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": "theirs"}}}}
    cloudformation.create_stack(StackName=name, TemplateBody=json.dumps(theirs))
    cloudformation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
    with pytest.raises(RehearsalError):
        _deploy(cloud, "family=trn1")
    stack = cloud.stack(name)
    assert stack and stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    failed = [each["ResourceStatusReason"] for each in events if each["ResourceStatus"].endswith("_FAILED")]
    assert any("Nothing was deleted. A stack TrainingCluster-Network existed" in each for each in failed), (
        failed
    )
    assert [each["Name"] for each in cloud.client("s3").list_buckets()["Buckets"]].count("theirs") == 1
    assert [each["IsDefault"] for each in cloud.client("ec2").describe_vpcs()["Vpcs"]] == [True]
    cloudformation.delete_stack(StackName=name)
    cloudformation.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


def test_auto_lands_in_the_first_zone_that_offers_the_family(cloud: Cloud) -> None:
    _deploy(cloud, "family=trn1")
    assert _zone_resource(cloud)["PhysicalResourceId"] == ZONE_ID
    assert set(_subnets(cloud).values()) == {ZONE_NAME}
    assert (_outputs(cloud)["ZoneId"], _outputs(cloud)["ZoneName"]) == (ZONE_ID, ZONE_NAME)
    assert _outputs(cloud)["OtherZoneName"] == OTHER_ZONE_NAME


def test_flows_are_logged_where_the_template_says(cloud: Cloud) -> None:
    (flow_log,) = cloud.client("ec2").describe_flow_logs()["FlowLogs"]
    assert (flow_log["ResourceId"], flow_log["TrafficType"]) == (_outputs(cloud)["VpcId"], "ALL")
    group = flow_log["LogGroupName"]
    (found,) = cloud.client("logs").describe_log_groups(logGroupNamePrefix=group)["logGroups"]
    assert found["retentionInDays"] == 90


def test_a_family_that_the_zone_lacks_is_refused_with_those_that_do_and_rolled_back(cloud: Cloud) -> None:
    before = _subnets(cloud), _outputs(cloud)
    with pytest.raises(RehearsalError):
        _deploy(cloud, "family=p5en")
    stack = cloud.stack("TrainingCluster-Network")
    assert stack and stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert _zone_resource(cloud)["PhysicalResourceId"] == ZONE_ID
    assert (_subnets(cloud), _outputs(cloud)) == before
    events = cloud.client("cloudformation").describe_stack_events(StackName="TrainingCluster-Network")[
        "StackEvents"
    ]
    (failed,) = (each for each in events if each["ResourceStatus"].endswith("_FAILED"))
    assert failed["ResourceType"] == RESOURCE_TYPE
    said = f"stays in {ZONE_ID} ({ZONE_NAME}) for good, and that zone does not offer p5en.48xlarge."
    assert said in failed["ResourceStatusReason"]
    those_that_do = "c5.4xlarge, p5en.48xlarge: use1-az2 (us-east-1c), use1-az6 (us-east-1a)."
    assert those_that_do in failed["ResourceStatusReason"]


def test_another_family_that_the_zone_offers_keeps_it_and_every_subnet(cloud: Cloud) -> None:
    before = _subnets(cloud)
    _deploy(cloud, "family=p4d", "endpoints=private")  # p4d's first zone would be another one
    assert _subnets(cloud) == before
    assert _outputs(cloud)["OtherZoneName"] == OTHER_ZONE_NAME
    assert _zone_resource(cloud)["PhysicalResourceId"] == ZONE_ID
    endpoints = cloud.client("ec2").describe_vpc_endpoints()["VpcEndpoints"]
    assert {"ec2", "ssmmessages"} < {each["ServiceName"].rpartition(".")[2] for each in endpoints}
