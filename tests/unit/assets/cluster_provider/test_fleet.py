"""Updates that want a stopped fleet: stopped only if it may be, and running again whatever came of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.library import (
    HEAD_NODE,
    LOGIN_NODES,
    OR_DRAIN,
    OR_TERMINATE,
    STOP,
    refused_change,
)
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

JOBS = {"Status": "Success", "StandardOutputContent": "7 gpt2 (ann, 1:02)\n8 bert (bob, 0:10)\n"}
NO_JOBS = {"Status": "Success", "StandardOutputContent": ""}
START, STOPS = "START_REQUESTED", "STOP_REQUESTED"


@pytest.fixture(autouse=True)
def _cluster_stands_and_updates_want_a_stopped_fleet(provider: Provider) -> None:
    provider.library.exists("CREATE_COMPLETE")
    provider.library.wants = [refused_change(STOP)]


def _stops(provider: Provider, **more: Any) -> Asked:
    """An update for which the fleet has stopped."""
    asked = provider.update(**more)
    assert not asked.poll()
    assert provider.library.fleet == STOPS
    provider.library.fleet = "STOPPED"
    return asked


def test_an_idle_fleet_is_stopped_updated_and_started_again(provider: Provider) -> None:
    asked = provider.update()
    assert provider.library.changes == []
    assert not asked.poll()
    for provider.library.fleet in (STOPS, "STOPPING"):
        assert not asked.poll()
    assert provider.library.changes == [STOPS]
    provider.library.fleet = "STOPPED"
    assert not asked.poll()
    assert provider.library.changes == [STOPS, "update"]
    assert not asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    for provider.library.fleet in ("STOPPED", START, "STARTING"):
        assert not asked.poll()
    provider.library.fleet = "RUNNING"
    assert asked.poll()
    assert provider.library.changes == [STOPS, "update", START]


def test_the_stages_of_such_an_update_are_published_in_order(provider: Provider) -> None:
    asked = _stops(provider)
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    asked.poll()
    provider.library.fleet = "RUNNING"
    asked.poll()
    assert provider.stages == ["validating", "stopping the fleet", "starting the fleet", "done"]


def test_the_fleet_is_started_again_when_the_update_failed(provider: Provider) -> None:
    asked = _stops(provider)
    asked.poll()
    provider.library.becomes("UPDATE_FAILED")
    assert not asked.poll()
    assert provider.library.changes[-1] == START
    provider.library.fleet = "RUNNING"
    assert "UPDATE_FAILED" in asked.fails()


def test_the_fleet_is_asked_to_start_when_the_library_refuses_even_so(provider: Provider) -> None:
    asked = _stops(provider)
    provider.library.fail("update", provider.refused("never"))
    assert asked.fails() == "never"
    assert provider.library.changes == [STOPS, "update", START]


def test_why_an_update_was_refused_is_told_also_when_the_fleet_does_not_start(provider: Provider) -> None:
    asked = _stops(provider)
    provider.library.fail("update", provider.refused("never"))
    provider.library.fail(START, provider.throttled())
    assert asked.fails() == "never"


@pytest.mark.parametrize("before", ["STOPPED", "STOPPING", STOPS])
def test_a_fleet_that_the_user_stopped_stays_stopped(provider: Provider, before: str) -> None:
    provider.library.fleet = before
    asked = provider.update()
    asked.poll()
    provider.library.fleet = "STOPPED"
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert asked.poll()
    assert START not in provider.library.changes


@pytest.mark.parametrize("before", ["PROTECTED", "STARTING", START])
def test_a_fleet_that_was_up_or_coming_up_runs_again(provider: Provider, before: str) -> None:
    provider.library.fleet = before
    asked = _stops(provider)
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert not asked.poll()
    assert provider.library.changes[-1] == START


def test_a_fleet_that_somebody_starts_meanwhile_is_stopped_again(provider: Provider) -> None:
    asked = _stops(provider)
    provider.library.fleet = "RUNNING"
    assert not asked.poll()
    assert provider.library.changes == [STOPS, STOPS]
    assert provider.record_value["fleet_before"] == "RUNNING"


def test_a_fleet_that_was_being_stopped_meanwhile_was_up_before(provider: Provider) -> None:
    asked = _stops(provider)
    provider.library.fleet = START
    asked.poll()
    assert provider.record_value["fleet_before"] == "RUNNING"


def test_an_update_that_waited_for_another_still_stops_the_fleet(provider: Provider) -> None:
    provider.library.becomes("UPDATE_IN_PROGRESS")
    asked = provider.update()
    assert not asked.poll()
    assert provider.library.changes == []
    provider.library.becomes("UPDATE_COMPLETE")
    assert not asked.poll()
    assert provider.library.changes == [STOPS]


def test_busy_nodes_are_not_stopped_and_their_jobs_are_named(provider: Provider) -> None:
    provider.library.running, provider.aws.invocations = 3, [JOBS]
    said = provider.update().fails()
    assert said.startswith(
        "3 compute nodes of training run, and this update requires them to be stopped. Nothing was"
    )
    assert "Jobs: 7 gpt2 (ann, 1:02); 8 bert (bob, 0:10)." in said
    assert "-c on_busy=stop, which ends them and their jobs." in said
    assert "SlurmQueues[q].CapacityType: ONDEMAND -> SPOT" in said
    assert provider.library.changes == []
    assert provider.aws.commands[0]["InstanceIds"] == [HEAD_NODE]


def test_nodes_that_run_without_a_job_are_said_to_end_by_themselves(provider: Provider) -> None:
    provider.library.running, provider.aws.invocations = 1, [NO_JOBS]
    said = provider.update().fails()
    assert "No job runs on them. Idle nodes above min_nodes end by themselves after some minutes" in said
    assert provider.library.changes == []


def test_jobs_that_cannot_be_asked_for_are_told_apart_from_none(provider: Provider) -> None:
    provider.library.running, provider.aws.unreachable = 1, {"ssm.send_command"}
    assert "The jobs could not be listed" in provider.update().fails()
    assert provider.library.changes == []


def test_busy_nodes_are_stopped_when_that_is_asked_for(provider: Provider) -> None:
    provider.library.running = 3
    _stops(provider, on_busy="stop")
    assert provider.aws.commands == []


@pytest.mark.parametrize(
    ("library_says", "offered"), [(OR_DRAIN, True), (OR_TERMINATE, False), (STOP, False)]
)
def test_draining_is_offered_only_where_the_library_would_take_it(
    provider: Provider, library_says: str, offered: bool
) -> None:
    provider.library.wants = [refused_change(library_says)]
    provider.library.running, provider.aws.invocations = 1, [JOBS]
    assert ("or -c on_busy=drain" in provider.update().fails()) == offered


def test_what_cannot_be_drained_is_refused_with_the_way_round(provider: Provider) -> None:
    provider.library.running, provider.aws.invocations = 2, [JOBS]
    said = provider.update(on_busy="drain").fails()
    assert "draining nodes is not enough" in said
    assert "Jobs: 7 gpt2 (ann, 1:02); 8 bert (bob, 0:10)." in said
    assert "-c on_busy=stop" in said
    assert provider.library.changes == []


def test_a_fleet_without_nodes_is_stopped_also_where_it_was_to_be_drained(provider: Provider) -> None:
    _stops(provider, on_busy="drain")


def test_a_refused_update_of_busy_nodes_leaves_nothing_to_roll_back(provider: Provider) -> None:
    provider.library.running, provider.aws.invocations = 3, [JOBS]
    provider.update().fails()
    rollback = provider.roll_back()
    assert not rollback.poll()
    assert rollback.poll()
    assert provider.library.changes == []


def test_nothing_is_stopped_unless_what_the_fleet_did_before_is_written_down(provider: Provider) -> None:
    asked = provider.update()
    provider.aws.denied["ssm.put_parameter"] = "ThrottlingException"
    assert not asked.poll()
    assert provider.library.changes == []
    provider.aws.denied.clear()
    assert not asked.poll()
    assert provider.library.changes == [STOPS]
    assert provider.record_value["fleet_before"] == "RUNNING"


@pytest.mark.parametrize("operation", ["running_compute_nodes", "fleet_status", STOPS])
def test_stopping_survives_throttling(provider: Provider, operation: str) -> None:
    asked = provider.update()
    provider.library.fail(operation, provider.throttled())
    assert not asked.poll()
    assert not asked.poll()
    assert provider.library.fleet == STOPS
    assert provider.record_value["fleet_before"] == "RUNNING"


def test_starting_survives_throttling(provider: Provider) -> None:
    asked = _stops(provider)
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    provider.library.fail(START, provider.throttled())
    assert not asked.poll()
    assert not asked.poll()
    assert provider.library.fleet == START


def test_an_update_ends_only_when_it_is_noted_that_the_fleet_runs_again(provider: Provider) -> None:
    asked = _stops(provider)
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    asked.poll()
    provider.library.fleet = "RUNNING"
    provider.aws.denied["ssm.put_parameter"] = "ThrottlingException"
    assert not asked.poll()
    provider.aws.denied.clear()
    assert asked.poll()
    assert provider.record_value["fleet_before"] is None


def test_a_fleet_left_stopped_is_started_by_a_deploy_without_changes_on_a_failed_cluster(
    provider: Provider,
) -> None:
    _stops(provider).poll()
    provider.library.becomes("UPDATE_FAILED")
    again = provider.ask(provider.event("Update", request="Update-2"))
    assert not again.poll()
    assert not again.poll()
    assert provider.library.changes == [STOPS, "update", START]
    provider.library.fleet = "RUNNING"
    assert again.poll()


def test_a_fleet_that_was_never_stopped_is_not_even_asked_for(provider: Provider) -> None:
    provider.library.wants = []
    asked = provider.update()
    provider.library.asked.clear()
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert asked.poll()
    assert "fleet_status" not in provider.library.asked


def test_a_deploy_after_a_rollback_that_never_ended_is_checked_first(provider: Provider) -> None:
    _stops(provider)
    provider.roll_back()
    again = provider.update(request="Update-2")
    provider.library.fail("check_update", provider.refused("Invalid cluster configuration."))
    assert again.fails() == "Invalid cluster configuration."


def test_a_failed_update_is_explained_also_when_the_fleet_cannot_start(provider: Provider) -> None:
    asked = _stops(provider)
    asked.poll()
    provider.library.becomes("UPDATE_FAILED", stack_status="UPDATE_ROLLBACK_FAILED")
    assert "continue-update-rollback" in asked.fails()
    assert provider.record_value["fleet_before"] == "RUNNING"  # for the rollback


def test_an_update_that_succeeded_is_not_over_while_the_fleet_refuses_to_start(provider: Provider) -> None:
    asked = _stops(provider)
    asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    provider.library.fail(START, provider.refused("the head node is gone"))
    assert asked.fails() == "the head node is gone"
    assert provider.record_value["fleet_before"] == "RUNNING"


def test_what_the_library_checked_before_the_fleet_stopped_is_not_checked_again(provider: Provider) -> None:
    _stops(provider).poll()
    assert [each for each in provider.library.asked if each.startswith("check_update")] == [
        "check_update refused"
    ]


def test_what_wants_login_nodes_stopped_stops_no_fleet(provider: Provider) -> None:
    provider.library.wants = [refused_change(OR_DRAIN), refused_change(LOGIN_NODES)]
    assert LOGIN_NODES in provider.update().fails()
    assert provider.library.changes == []
