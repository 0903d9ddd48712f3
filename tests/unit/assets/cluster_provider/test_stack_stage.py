"""The stage of a cluster's stack, from its events."""

from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.provider import Provider

STACK_ID = "arn/stack/training/1"


def _event(name: str, type_: str, status: str = "CREATE_IN_PROGRESS", **more: Any) -> dict[str, Any]:
    values = {"logicalResourceId": name, "resourceType": type_, "resourceStatus": status}
    return values | {"stackId": STACK_ID, "physicalResourceId": name} | more


STACK = _event("training", "AWS::CloudFormation::Stack", physicalResourceId=STACK_ID)
HEAD_NODE = _event("HeadNode", "AWS::EC2::Instance")
ROLE = _event("Role", "AWS::IAM::Role")


@pytest.mark.parametrize(
    ("type_", "stage"),
    [
        ("AWS::EC2::Instance", "head node booting"),
        ("AWS::CloudFormation::WaitCondition", "head node booting"),
        ("AWS::CloudFormation::Stack", "fleet"),
        ("AWS::EC2::LaunchTemplate", "fleet"),
        ("AWS::AutoScaling::AutoScalingGroup", "fleet"),
        ("AWS::FSx::FileSystem", "storage"),
        ("AWS::EFS::MountTarget", "storage"),
        ("AWS::EC2::Volume", "storage"),
        ("AWS::EC2::SecurityGroup", "network"),
        ("AWS::Route53::HostedZone", "network"),
        ("AWS::ElasticLoadBalancingV2::LoadBalancer", "network"),
        ("AWS::IAM::Role", "cluster resources"),
        ("Custom::Anything", "cluster resources"),
    ],
)
def test_each_kind_of_resource_has_its_stage(provider: Provider, type_: str, stage: str) -> None:
    assert provider.modules["stack_stage"].current([_event("R", type_)]) == stage


def test_the_newest_of_what_is_under_way_counts(provider: Provider) -> None:
    assert provider.modules["stack_stage"].current([ROLE, HEAD_NODE, STACK]) == "cluster resources"
    assert provider.modules["stack_stage"].current([HEAD_NODE, ROLE, STACK]) == "head node booting"


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "CREATE_FAILED", "DELETE_COMPLETE"])
def test_what_has_ended_does_not_count(provider: Provider, status: str) -> None:
    ended = _event("HeadNode", "AWS::EC2::Instance", status)
    volume = _event("Volume", "AWS::EC2::Volume")
    assert provider.modules["stack_stage"].current([ended, HEAD_NODE, volume, STACK]) == "storage"


def test_what_is_begun_again_counts_again(provider: Provider) -> None:
    ended = _event("HeadNode", "AWS::EC2::Instance", "CREATE_COMPLETE")
    again = _event("HeadNode", "AWS::EC2::Instance", "DELETE_IN_PROGRESS")
    assert provider.modules["stack_stage"].current([again, ended, HEAD_NODE]) == "head node booting"


def test_the_stack_itself_is_no_stage(provider: Provider) -> None:
    assert provider.modules["stack_stage"].current([STACK]) == "cluster resources"


def test_no_events_are_a_stage_too(provider: Provider) -> None:
    assert provider.modules["stack_stage"].current([]) == "cluster resources"


def test_a_resource_without_id_is_under_way(provider: Provider) -> None:
    begun = _event("HeadNode", "AWS::EC2::Instance")
    del begun["physicalResourceId"]
    assert provider.modules["stack_stage"].current([begun]) == "head node booting"
