"""The provider's notes, the same for each request, and the stage of a cluster's stack, from its events."""

import json
import re
import uuid
from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import LOG_GROUP, PARAMETER, PARAMETER_BYTES
from tests.unit.assets.cluster_provider.fakes.provider import Provider

# CDK's framework polls every 10 s (constructs/training_cluster/cluster/cluster.py), 58 minutes at most.
POLLS = 58 * 6
BEFORE = "2026-01-01T11:00:00.000000+00:00"
_BEGINS = {"stackId": "stack/cluster", "resourceStatus": "CREATE_IN_PROGRESS"}
BOOTING = _BEGINS | {"logicalResourceId": "HeadNode", "resourceType": "AWS::EC2::Instance"}
QUEUE = _BEGINS | {"logicalResourceId": "Queue", "resourceType": "AWS::CloudFormation::Stack"}


def test_each_stage_is_noted_once(provider: Provider) -> None:
    provider.library.validation = ("WARNING B: maybe",)
    asked = provider.create()
    for events in ([], [QUEUE], [BOOTING], [BOOTING]):
        provider.library.events = events
        asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    asked.poll()
    expected = ["validating", "validated", "creating", "fleet", "head node booting", "done"]
    assert provider.stages == expected
    expected[1] += ": WARNING B: maybe"
    assert provider.aws.log == {f"{LOG_GROUP}/progress": [f"Create training: {stage}" for stage in expected]}
    for _, time in provider.record_value["stages"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", time)


@pytest.mark.parametrize(("kind", "fleet"), [("roll_back", "RUNNING"), ("create", None), ("delete", None)])
def test_an_update_inherits_the_fleets_state_alone(provider: Provider, kind: str, fleet: str | None) -> None:
    flags = dict.fromkeys(("begun", "checked", "unchanged", "removing"), True)
    texts = {"fleet_before": "RUNNING", "messages": "m", "replaces": "r", "cluster_name": "training"}
    stopped = {"request_id": "Update-0", "request": "Update", "began": BEFORE} | flags | texts
    provider.aws.parameters[PARAMETER] = json.dumps(stopped)
    if kind == "roll_back":
        provider.library.exists()
    getattr(provider, kind)()
    record = provider.record_value
    assert record["fleet_before"] == fleet
    assert (record["begun"], record["unchanged"], record["replaces"]) == (False, False, None)
    assert (record["removing"], "m" in record["messages"].split()) == (False, False)


@pytest.mark.parametrize("character", ["x", "é", "集", '"', "\n", "😀"])
def test_the_longest_messages_fit_into_the_parameter(provider: Provider, character: str) -> None:
    provider.library.validation = (character * 9000,)
    provider.create()
    assert provider.record_value["messages"].endswith("has all of it)")
    assert len(provider.aws.parameters[PARAMETER]) < PARAMETER_BYTES


def test_an_hour_of_stages_fits_the_parameter(provider: Provider) -> None:
    provider.library.validation = ("x" * 9000,)
    asked = provider.create()
    asked.poll()
    for poll in range(POLLS):
        provider.library.events = [BOOTING if poll % 2 else QUEUE]
        asked.poll()
    assert (provider.stages[-1], len(provider.stages)) == ("head node booting", 24)


def test_the_newest_requests_fit_a_full_parameter(provider: Provider) -> None:
    provider.library.exists()
    requests = [str(uuid.UUID(int=number)) for number in range(12)]
    for request in requests:
        provider.update(request=request)
    record = provider.record.Record.load()
    assert record.former == requests[-9:-1]
    record.stages = []
    record.cluster_name = "c" * 40
    for number in range(30):
        record.enter(f"removing the failed former cluster {number % 10}", "x" * 9000)
    assert len(provider.aws.parameters[PARAMETER]) < PARAMETER_BYTES
    assert len(provider.stages) == 24


@pytest.mark.parametrize("call", ["ssm.get_parameter", "ssm.put_parameter"])
@pytest.mark.parametrize("kind", ["create", "update"])
def test_a_throttled_record_is_opened_after_retries(provider: Provider, kind: str, call: str) -> None:
    provider.aws.throttled[call] = 4
    provider.library.exists()
    getattr(provider, kind)()
    assert provider.slept == [2, 4, 8, 16]
    assert provider.record_value["request"] == kind.capitalize()


@pytest.mark.parametrize(
    "text", ["broken", "null", "[]", "{}", '{"request_id": "Create-1", "former_field": 1}', '"Create-1"']
)
def test_a_record_in_an_unknown_format_is_none(provider: Provider, text: str) -> None:
    provider.aws.parameters[PARAMETER] = text
    assert provider.record.Record.load() is None
    provider.create()
    assert provider.record_value["request_id"] == "Create-1"


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
