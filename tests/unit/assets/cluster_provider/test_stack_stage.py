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


ENDED = [
    _event("HeadNode", "AWS::EC2::Instance", status)
    for status in ("CREATE_COMPLETE", "CREATE_FAILED", "DELETE_COMPLETE")
]
AGAIN = _event("HeadNode", "AWS::EC2::Instance", "DELETE_IN_PROGRESS")
WITHOUT_ID = {key: value for key, value in HEAD_NODE.items() if key != "physicalResourceId"}
SIGNAL = _event("HeadNodeWaitCondition2", "AWS::CloudFormation::WaitCondition")
UPDATE = STACK | {"resourceStatus": "UPDATE_IN_PROGRESS"}
VOLUME = _event("Volume", "AWS::EC2::Volume")


@pytest.mark.parametrize(
    ("events", "stage"),
    [
        ([ROLE, HEAD_NODE, STACK], "cluster resources"),
        ([HEAD_NODE, ROLE, STACK], "head node booting"),
        *(([ended, HEAD_NODE, VOLUME, STACK], "storage") for ended in ENDED),
        ([AGAIN, ENDED[0], HEAD_NODE], "head node booting"),
        ([WITHOUT_ID], "head node booting"),
        ([SIGNAL, STACK], "head node booting"),
        ([SIGNAL, UPDATE, STACK], "head node applies the update"),
        ([HEAD_NODE, UPDATE, STACK], "head node booting"),
        ([STACK], "cluster resources"),
        ([], "cluster resources"),
    ],
)
def test_the_newest_of_what_is_under_way_counts(
    provider: Provider, events: list[dict[str, Any]], stage: str
) -> None:
    assert provider.modules["stack_stage"].current(events) == stage
