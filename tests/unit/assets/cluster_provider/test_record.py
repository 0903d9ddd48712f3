"""The provider's notes: found again by the same request, begun anew by another, small enough, published."""

import json
import re
import uuid
from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import LOG_GROUP, PARAMETER, PARAMETER_BYTES
from tests.unit.assets.cluster_provider.fakes.provider import Provider

# CDK's framework polls every 10 s (constructs/training_cluster/cluster/cluster.py), 58 minutes at most.
POLLS = 58 * 6
BEFORE, LATER = "2026-01-01T11:00:00.000000+00:00", "2026-01-01T13:00:00.000000+00:00"
_BEGINS = {"stackId": "stack/cluster", "resourceStatus": "CREATE_IN_PROGRESS"}
BOOTING = _BEGINS | {"logicalResourceId": "HeadNode", "resourceType": "AWS::EC2::Instance"}
QUEUE = _BEGINS | {"logicalResourceId": "Queue", "resourceType": "AWS::CloudFormation::Stack"}


def test_stages_of_a_create_are_noted_in_order(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.events = [QUEUE]
    asked.poll()
    provider.library.events = [BOOTING]
    asked.poll()
    asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    asked.poll()
    expected = ["validating", "validated", "creating", "fleet", "head node booting", "done"]
    assert provider.stages == expected
    for _, time in provider.record_value["stages"]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", time)


def test_each_stage_is_one_line_of_the_log(provider: Provider) -> None:
    provider.library.validation = ("WARNING B: maybe",)
    asked = provider.create()
    asked.poll()
    assert provider.aws.log == {
        f"{LOG_GROUP}/progress": [
            "Create training: validating",
            "Create training: validated: WARNING B: maybe",
            "Create training: creating",
        ]
    }


def test_a_long_stage_is_one_log_line(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.events = [BOOTING]
    for _ in range(3):
        asked.poll()
    assert provider.aws.log[f"{LOG_GROUP}/progress"].count("Create training: head node booting") == 1


def test_a_stage_with_news_stays_one_stage(provider: Provider) -> None:
    provider.library.exists()
    provider.library.fail("update", provider.throttled())
    asked = provider.update()
    asked.poll()
    asked.poll()
    assert provider.stages == ["validating", "updating"]


def test_a_stage_that_nobody_names_is_still_progress(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.fail("stack_events", provider.throttled())
    asked.poll()
    assert provider.stages[-1] == "in progress"


@pytest.mark.parametrize("call", ["logs.create_log_stream", "logs.put_log_events"])
def test_a_log_that_takes_nothing_stops_nothing(provider: Provider, call: str) -> None:
    provider.aws.denied[call] = "AccessDeniedException"
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    assert asked.poll()


def test_the_same_request_finds_its_notes_again(provider: Provider) -> None:
    provider.create().poll()
    before = provider.record_value
    assert before["begun"]
    provider.create()
    assert provider.record_value["stages"][: len(before["stages"])] == before["stages"]
    assert provider.record_value["begun"]


def test_another_request_begins_anew(provider: Provider) -> None:
    provider.create().poll()
    provider.library.becomes("CREATE_FAILED")
    provider.delete()
    record = provider.record_value
    assert (record["request_id"], record["request"]) == ("Delete-1", "Delete")
    assert (record["begun"], record["checked"], record["removing"]) == (False, False, False)
    assert (record["replaces"], record["fleet_before"], record["stages"]) == (None, None, [])


def _stopped(provider: Provider) -> dict[str, Any]:
    """Notes of an update that stopped a fleet that ran."""
    values = {"begun": True, "checked": True, "unchanged": True, "removing": True}
    texts = {"fleet_before": "RUNNING", "messages": "m", "replaces": "r"}
    return (
        {"request_id": "Update-0", "request": "Update", "cluster_name": "training", "began": BEFORE}
        | values
        | texts
    )


def test_an_update_inherits_the_fleets_state_alone(
    provider: Provider,
) -> None:
    provider.library.exists()
    provider.aws.parameters[PARAMETER] = json.dumps(_stopped(provider))
    provider.roll_back()
    record = provider.record_value
    assert record["fleet_before"] == "RUNNING"
    assert (record["begun"], record["unchanged"], record["replaces"]) == (False, False, None)
    assert (record["checked"], record["removing"]) == (False, False)
    assert record["messages"] == ""


@pytest.mark.parametrize("kind", ["create", "delete"])
def test_a_new_cluster_inherits_no_fleet(provider: Provider, kind: str) -> None:
    provider.aws.parameters[PARAMETER] = json.dumps(_stopped(provider))
    getattr(provider, kind)()
    assert provider.record_value["fleet_before"] is None


def test_a_missing_parameter_is_written(provider: Provider) -> None:
    provider.aws.parameters.clear()
    provider.create()
    assert provider.record_value["request_id"] == "Create-1"


@pytest.mark.parametrize("call", ["ssm.get_parameter", "ssm.put_parameter"])
@pytest.mark.parametrize("kind", ["create", "update"])
def test_what_cannot_be_noted_is_not_begun(provider: Provider, kind: str, call: str) -> None:
    provider.aws.denied[call] = "AccessDeniedException"
    said = provider.refuses(getattr(provider, kind))
    assert PARAMETER in said
    assert "nothing was changed" in said
    assert provider.library.asked == []


@pytest.mark.parametrize("call", ["ssm.get_parameter", "ssm.put_parameter"])
def test_a_poll_without_its_record_comes_back(provider: Provider, call: str) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    provider.aws.unreachable.add(call)
    done = asked.poll()
    assert done == (call == "ssm.put_parameter")  # the last stage is for people only
    provider.aws.unreachable.clear()
    assert asked.poll()
    assert provider.library.changes == ["create"]


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
    assert provider.stages[-1] == "head node booting"
    assert len(provider.stages) == 24


def test_the_newest_requests_fit_a_full_parameter(
    provider: Provider,
) -> None:
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


def _another(provider: Provider, began: str) -> Any:
    """Have another request's record."""
    another = provider.record.Record(
        request_id="Another-1", kind="Update", cluster_name="training", received=began
    )
    another.open()
    return another


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_later_request_alone_supersedes(provider: Provider, kind: str) -> None:
    began = "2026-01-01T12:00:00.000000+00:00"
    own = provider.record.Record(request_id="Own-1", kind=kind, cluster_name="training", received=began)
    _another(provider, LATER)
    with pytest.raises(provider.record.SupersededError):
        own.save()
    assert provider.record_value["request_id"] == "Another-1"
    _another(provider, BEFORE)
    own.save()
    assert provider.record_value["request_id"] == "Own-1"


def test_a_delete_supersedes_all(provider: Provider) -> None:
    _another(provider, LATER)
    own = provider.record.Record(
        request_id="Delete-1", kind="Delete", cluster_name="training", received=BEFORE
    )
    own.save()
    assert provider.record_value["request_id"] == "Delete-1"


@pytest.mark.parametrize("kind", ["create", "update"])
def test_a_poll_with_an_earlier_record_waits(provider: Provider, kind: str) -> None:
    if kind == "update":
        provider.library.exists()
    asked = getattr(provider, kind)()
    own = provider.aws.parameters[PARAMETER]
    _another(provider, BEFORE)
    provider.library.asked.clear()
    assert not asked.poll()
    assert provider.library.asked == []
    provider.aws.parameters[PARAMETER] = own
    assert not asked.poll()
    assert provider.library.changes == [kind]


@pytest.mark.parametrize("kind", ["create", "update"])
def test_a_poll_with_a_later_record_ends(provider: Provider, kind: str) -> None:
    if kind == "update":
        provider.library.exists()
    asked = getattr(provider, kind)()
    _another(provider, LATER)
    assert "a later request superseded this one" in asked.fails()
    assert provider.library.changes == []
    assert provider.record_value["request_id"] == "Another-1"


def test_a_deletion_goes_on_whatever_notes_it_finds(provider: Provider) -> None:
    provider.library.exists()
    asked = provider.delete()
    _another(provider, LATER)
    assert not asked.poll()
    assert provider.library.changes == ["delete"]


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_a_repeated_event_keeps_its_beginning(provider: Provider, kind: str) -> None:
    first = getattr(provider, kind)()
    provider.clock.goes_on(minutes=1)
    assert getattr(provider, kind)().event["Began"] == first.event["Began"] == provider.record_value["began"]


def test_a_deleted_record_is_none(provider: Provider) -> None:
    provider.create()
    record = provider.record.Record.load()
    record.delete()
    assert provider.aws.parameters == {}
    assert provider.record.Record.load() is None
    record.delete()


def test_a_deletion_continues_without_its_record(provider: Provider) -> None:
    provider.aws.denied["ssm.put_parameter"] = "AccessDeniedException"
    provider.delete()
    assert provider.slept == [2, 4, 8, 16]
    assert provider.aws.parameters == {}


def test_a_failed_request_ends_with_its_reason(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_FAILED")
    said = asked.fails()
    assert provider.stages[-1] == "failed"
    assert provider.record_value["messages"] == said


def test_a_refused_request_has_the_librarys_words(provider: Provider) -> None:
    asked = provider.create()
    provider.library.fail("create", provider.refused("no right to iam:CreateRole"))
    asked.fails()
    assert (provider.stages[-1], provider.record_value["messages"]) == (
        "failed",
        "no right to iam:CreateRole",
    )


def test_an_unrecorded_failure_is_reported(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_FAILED")
    provider.aws.denied["ssm.put_parameter"] = "AccessDeniedException"
    assert "CREATE_FAILED" in asked.fails()
