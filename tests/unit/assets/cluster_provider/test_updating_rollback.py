"""A rollback is an Update that must not fail: it undoes what it can, and leaves the rest as it is."""

from __future__ import annotations

import pytest

from tests.unit.assets.cluster_provider.fakes.library import (
    ANOTHER_STACK,
    NEVER,
    STOP,
    refused_change,
)
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

START, STOPS = "START_REQUESTED", "STOP_REQUESTED"
JOBS = {"Status": "Success", "StandardOutputContent": "7 gpt2 (ann, 1:02)\n"}


@pytest.fixture(autouse=True)
def _cluster_stands(provider: Provider) -> None:
    provider.library.exists("CREATE_COMPLETE")


def _fails_in_cloudformation(provider: Provider) -> None:
    """An update that failed and was rolled back by the cluster's own stack."""
    asked = provider.update()
    asked.poll()
    provider.library.becomes("UPDATE_FAILED")
    asked.fails()


def _stopped_for_an_update(provider: Provider) -> Asked:
    provider.library.wants = [refused_change(STOP)]
    asked = provider.update()
    asked.poll()
    provider.library.fleet = "STOPPED"
    return asked


def test_a_rollback_of_what_the_clusters_stack_undid_itself_succeeds(provider: Provider) -> None:
    _fails_in_cloudformation(provider)
    rollback = provider.roll_back()
    assert not rollback.poll()
    assert rollback.poll()
    assert provider.library.changes == ["update"]


def test_a_rollback_undoes_an_update_that_succeeded(provider: Provider) -> None:
    asked = provider.update()
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    asked.poll()
    rollback = provider.roll_back()
    assert not rollback.poll()
    assert provider.library.config["Scheduling"]["SlurmQueues"] == [{"CapacityType": "ONDEMAND"}]
    provider.library.becomes("UPDATE_COMPLETE")
    assert rollback.poll()
    assert provider.library.changes == ["update", "update"]


def test_a_rollback_waits_for_the_update_that_it_undoes(provider: Provider) -> None:
    provider.update().poll()
    rollback = provider.roll_back()
    assert not rollback.poll()
    assert provider.library.changes == ["update"]
    provider.library.becomes("UPDATE_COMPLETE")
    assert not rollback.poll()
    assert provider.library.changes == ["update", "update"]


def test_a_rollback_starts_the_fleet_that_the_update_stopped(provider: Provider) -> None:
    _stopped_for_an_update(provider)
    rollback = provider.roll_back()
    assert provider.record_value["request_id"] == "Rollback-1"
    assert provider.record_value["fleet_before"] == "RUNNING"
    assert not rollback.poll()
    assert not rollback.poll()
    assert provider.library.changes == [STOPS, START]
    provider.library.fleet = "RUNNING"
    assert rollback.poll()
    assert provider.record_value["fleet_before"] is None


def test_a_rollback_waits_until_a_stopping_fleet_has_stopped_before_it_starts_it(provider: Provider) -> None:
    _stopped_for_an_update(provider)
    provider.library.fleet = "STOPPING"
    rollback = provider.roll_back()
    assert not rollback.poll()
    assert provider.library.changes == [STOPS]
    provider.library.fleet = "STOPPED"
    assert not rollback.poll()
    assert not rollback.poll()
    assert provider.library.changes == [STOPS, START]


def test_a_rollback_leaves_a_fleet_that_the_user_stopped(provider: Provider) -> None:
    provider.library.fleet = "STOPPED"
    _fails_in_cloudformation(provider)
    rollback = provider.roll_back()
    rollback.poll()
    assert rollback.poll()
    assert provider.library.changes == ["update"]


def test_a_fleet_that_a_rollback_has_started_is_not_started_by_the_next_deploy(provider: Provider) -> None:
    _stopped_for_an_update(provider)
    rollback = provider.roll_back()
    rollback.poll()
    rollback.poll()
    provider.library.fleet = "RUNNING"
    assert rollback.poll()
    provider.library.fleet, provider.library.wants = "STOPPED", []
    again = provider.update(request="Update-2")
    again.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert again.poll()
    assert provider.library.changes == [STOPS, START, "update"]


def test_a_rollback_that_busy_nodes_hold_up_leaves_the_cluster_and_succeeds(provider: Provider) -> None:
    asked = provider.update()
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    asked.poll()
    provider.library.wants = [refused_change(STOP)]
    provider.library.running, provider.aws.invocations = 2, [JOBS]
    rollback = provider.roll_back()
    assert not rollback.poll()
    assert rollback.poll()
    assert provider.library.changes == ["update"]
    assert provider.stages[-2:] == ["left unchanged", "done"]
    assert (
        "The rollback left training as it is: 2 compute nodes of training run"
        in provider.record_value["messages"]
    )


def test_a_rollback_that_is_refused_leaves_the_cluster_and_starts_its_fleet(provider: Provider) -> None:
    asked = _stopped_for_an_update(provider)
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    provider.library.impossible = [refused_change(NEVER)]
    rollback = provider.roll_back()
    assert not rollback.poll()
    assert not rollback.poll()
    provider.library.fleet = "RUNNING"
    assert rollback.poll()
    assert provider.library.changes == [STOPS, "update", START]


def test_a_cluster_left_as_it_is_is_left_whatever_cloudformation_says_later(provider: Provider) -> None:
    _fails_in_cloudformation(provider)
    provider.library.fail("check_update", provider.refused("no"))
    rollback = provider.roll_back()
    rollback.poll()
    provider.aws.denied["cloudformation.describe_stacks"] = "AccessDenied"
    assert rollback.poll()


def test_a_rollback_whose_own_update_fails_succeeds_all_the_same(provider: Provider) -> None:
    asked = provider.update()
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    asked.poll()
    rollback = provider.roll_back()
    rollback.poll()
    provider.library.becomes("UPDATE_FAILED")
    assert rollback.poll()


def test_a_rollback_without_a_cluster_leaves_it_at_that(provider: Provider) -> None:
    provider.library.is_gone()
    rollback = provider.roll_back()
    assert rollback.answer() == {"IsComplete": True, "Data": {"HeadNodeInstanceId": "none"}}
    assert provider.library.changes == []


def test_a_rollback_leaves_another_stacks_cluster_alone(provider: Provider) -> None:
    provider.library.exists(owner=ANOTHER_STACK)
    assert provider.roll_back().poll()
    assert provider.library.changes == []


def test_a_rollback_leaves_a_cluster_that_never_stood_for_the_next_deploy(provider: Provider) -> None:
    provider.library.is_gone()
    asked = provider.update()
    asked.poll()
    provider.library.becomes("CREATE_FAILED")
    asked.fails()
    assert provider.roll_back().poll()
    assert provider.library.changes == ["create"]
    again = provider.update(request="Update-2")
    again.poll()
    assert provider.library.changes == ["create", "delete"]


def test_a_rollback_survives_throttling(provider: Provider) -> None:
    _fails_in_cloudformation(provider)
    provider.library.fail("find", provider.throttled())
    provider.library.fail("check_update", provider.throttled())
    rollback = provider.roll_back()
    assert [rollback.poll() for _ in range(4)] == [False, False, False, True]


def test_an_update_is_no_rollback_when_cloudformation_refuses_to_say(provider: Provider) -> None:
    provider.aws.denied["cloudformation.describe_stacks"] = "AccessDenied"
    provider.library.impossible = [refused_change(NEVER)]
    assert "cannot take this change" in provider.update().fails()


@pytest.mark.parametrize(
    ("status", "rolls_back"),
    [
        ("UPDATE_IN_PROGRESS", False),
        ("UPDATE_ROLLBACK_IN_PROGRESS", True),
        ("UPDATE_ROLLBACK_FAILED", True),
        ("ROLLBACK_IN_PROGRESS", False),
    ],
)
def test_the_parent_stacks_status_tells_a_rollback(provider: Provider, status: str, rolls_back: bool) -> None:
    provider.aws.parent_status = status
    assert provider.parent_stack.rolls_back("stack/ours") == rolls_back


def test_a_rollback_of_whom_cloudformation_does_not_answer_is_asked_again_later(provider: Provider) -> None:
    asked = provider.update()
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    asked.poll()
    rollback = provider.roll_back()
    rollback.poll()
    provider.library.becomes("UPDATE_FAILED")
    provider.aws.unreachable.add("cloudformation")
    assert not rollback.poll()
    provider.aws.unreachable.clear()
    assert rollback.poll()


def test_a_rollback_succeeds_also_when_the_fleet_cannot_be_started(provider: Provider) -> None:
    asked = _stopped_for_an_update(provider)
    asked.poll()
    provider.library.becomes("UPDATE_FAILED", stack_status="UPDATE_ROLLBACK_FAILED")
    rollback = provider.roll_back()
    rollback.poll()
    assert rollback.poll()
    assert provider.record_value["fleet_before"] == "RUNNING"  # for the next deploy


@pytest.mark.parametrize("code", ["Throttling", "ServiceUnavailable"])
def test_a_parent_stack_that_does_not_answer_is_asked_again(provider: Provider, code: str) -> None:
    provider.aws.denied["cloudformation.describe_stacks"] = code
    with pytest.raises(provider.errors.TransientError):
        provider.parent_stack.rolls_back("stack/ours")


@pytest.mark.parametrize("code", ["AccessDenied", "ValidationError"])
def test_a_parent_stack_that_we_may_not_see_rolls_nothing_back(provider: Provider, code: str) -> None:
    provider.aws.parent_status = "UPDATE_ROLLBACK_IN_PROGRESS"
    provider.aws.denied["cloudformation.describe_stacks"] = code
    assert not provider.parent_stack.rolls_back("stack/ours")


def test_a_rollback_begins_without_a_word_from_the_library_or_cloudformation(provider: Provider) -> None:
    provider.aws.unreachable.add("cloudformation")
    provider.library.fail("fleet_status", provider.throttled())
    provider.roll_back()
    assert provider.library.asked == ["fleet_status"]


def test_a_cluster_that_is_deleted_by_hand_is_left_so_by_a_rollback(provider: Provider) -> None:
    provider.library.becomes("DELETE_IN_PROGRESS")
    rollback = provider.roll_back()
    assert not rollback.poll()
    provider.library.is_gone()
    assert rollback.poll()
    assert provider.library.changes == []
