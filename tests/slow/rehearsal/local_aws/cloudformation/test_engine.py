"""A local AWS creates a stack's resources in an unfavorable order, and refuses what works by luck."""

from typing import Any

import pytest

from rehearsal.creation_order.template import Dependencies, unlucky_order
from tests.slow.account import Account

pytestmark = pytest.mark.slow


def _resources(account: Account) -> dict[str, Any]:
    """Return a Lustre file system with a group of its own, whose rules nothing waits for."""
    network, of_group = account.network, {"GroupId": {"Ref": "Group"}, "IpProtocol": "tcp"}
    port = of_group | {"FromPort": 988, "ToPort": 988}
    return {
        "Group": {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {
                "GroupDescription": "Lustre",
                "VpcId": network.vpc,
                "SecurityGroupEgress": [
                    {"IpProtocol": "icmp", "CidrIp": "10.0.0.0/8", "FromPort": -1, "ToPort": -1}
                ],
            },
        },
        "In": {
            "Type": "AWS::EC2::SecurityGroupIngress",
            "Properties": port | {"SourceSecurityGroupId": {"Ref": "Group"}},
        },
        "Out": {
            "Type": "AWS::EC2::SecurityGroupEgress",
            "Properties": port | {"DestinationSecurityGroupId": {"Ref": "Group"}},
        },
        "Lustre": {
            "Type": "AWS::FSx::FileSystem",
            "Properties": {
                "FileSystemType": "LUSTRE",
                "StorageCapacity": 1200,
                "SubnetIds": [network.private],
                "SecurityGroupIds": [{"Ref": "Group"}],
                "LustreConfiguration": {"DeploymentType": "SCRATCH_2"},
            },
        },
    }


def test_stack_that_deploys_by_luck_is_refused(account: Account) -> None:
    with pytest.raises(AssertionError, match=r"Lustre needs In, Out .*\(lustre-rules\)"):
        account.deploy("luck", {"Resources": _resources(account)})
    account.delete("luck")


@pytest.mark.parametrize("seed", [1])
def test_seed_decides_the_order(account: Account, seed: int) -> None:
    resources = _resources(account)
    resources["Lustre"]["DependsOn"] = ["In", "Out"]
    resources["Topic"] = {"Type": "AWS::SNS::Topic"}
    resources["Queue"] = {"Type": "AWS::SQS::Queue"}
    account.address.creation_order.write_text(str(seed))
    try:
        account.deploy("unlucky", {"Resources": resources})
        events = account.client("cloudformation").describe_stack_events(StackName="unlucky")["StackEvents"]
        account.delete("unlucky")
    finally:
        account.address.creation_order.unlink()
    created = [
        event["LogicalResourceId"]
        for event in reversed(events)
        if event["ResourceStatus"] == "CREATE_COMPLETE" and event["LogicalResourceId"] in resources
    ]
    assert created == unlucky_order(Dependencies(resources).direct, seed)
