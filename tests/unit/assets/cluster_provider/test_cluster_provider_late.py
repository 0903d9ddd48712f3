"""CloudFormation gives up after an hour without a reason; the provider gives up before, and says why."""

from __future__ import annotations

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import PARAMETER
from tests.unit.assets.cluster_provider.fakes.library import STOP, refused_change
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

START, STOPS = "START_REQUESTED", "STOP_REQUESTED"
IN_TIME, LATE = 54, 56


def _under_way(provider: Provider, kind: str) -> Asked:
    """A request whose work has begun and does not end."""
    if kind != "create":
        provider.library.exists()
    asked: Asked = getattr(provider, kind)()
    assert not asked.poll()
    return asked


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_work_that_takes_less_than_55_minutes_is_waited_for(provider: Provider, kind: str) -> None:
    asked = _under_way(provider, kind)
    provider.clock.goes_on(minutes=IN_TIME)
    assert not asked.poll()


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_work_that_takes_longer_fails_and_says_what_it_was_at(provider: Provider, kind: str) -> None:
    asked = _under_way(provider, kind)
    provider.clock.goes_on(minutes=LATE)
    said = asked.fails()
    status = f"{kind.upper()}_IN_PROGRESS"
    late = f"{kind.capitalize()} of training did not end within the hour that CloudFormation gives it"
    assert said.startswith(f"{late}; the cluster is {status}. ")
    assert f"Cluster training is {status} | Saved: s3://" in said
    assert "failures.json" in provider.saved
    assert provider.stages[-1] == "failed"
    assert provider.library.changes == [kind]


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_work_that_ends_at_that_very_poll_is_no_failure(provider: Provider, kind: str) -> None:
    asked = _under_way(provider, kind)
    if kind == "delete":
        provider.library.is_gone()
    else:
        provider.library.becomes(f"{kind.upper()}_COMPLETE")
    provider.clock.goes_on(minutes=LATE)
    assert asked.poll()


def test_the_time_of_an_event_that_comes_twice_runs_from_the_first(provider: Provider) -> None:
    _under_way(provider, "create")
    provider.clock.goes_on(minutes=IN_TIME)
    again = provider.create()
    provider.clock.goes_on(minutes=2)
    assert "did not end within the hour" in again.fails()


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_an_aws_that_does_not_answer_for_an_hour_is_a_failure(provider: Provider, kind: str) -> None:
    asked = _under_way(provider, kind)
    provider.library.fail("find", provider.throttled(), times=3)
    assert not asked.poll()
    provider.clock.goes_on(minutes=LATE)
    said = asked.fails()
    assert said.startswith(f"{kind.capitalize()} of training did not end within the hour")
    assert "the cluster is not visible" in said


def test_an_update_that_is_late_asks_for_the_fleet_of_before(provider: Provider) -> None:
    provider.library.wants = [refused_change(STOP)]
    asked = _under_way(provider, "update")
    provider.library.fleet = "STOPPING"
    provider.clock.goes_on(minutes=LATE)
    assert "Update of training did not end within the hour" in asked.fails()
    assert provider.library.changes == [STOPS, START]


def test_an_update_whose_fleet_cannot_be_asked_for_is_told_to_be_late(provider: Provider) -> None:
    provider.library.wants = [refused_change(STOP)]
    asked = _under_way(provider, "update")
    provider.library.fleet = "STOPPING"
    provider.library.fail(START, provider.throttled())
    provider.clock.goes_on(minutes=LATE)
    assert "did not end within the hour" in asked.fails()
    assert provider.record_value["fleet_before"] == "RUNNING"  # for the rollback


def test_a_rollback_that_is_late_leaves_the_cluster_as_it_is_and_succeeds(provider: Provider) -> None:
    _under_way(provider, "update")
    rollback = provider.roll_back()
    assert not rollback.poll()
    provider.clock.goes_on(minutes=LATE)
    assert rollback.poll()
    assert provider.stages[-2:] == ["left unchanged", "done"]
    assert "The time is up; the rollback leaves training as it is." in provider.record_value["messages"]
    assert provider.library.changes == ["update"]


def _lose(provider: Provider) -> None:
    del provider.aws.parameters[PARAMETER]
    provider.clock.goes_on(minutes=3)


@pytest.mark.parametrize("kind", ["create", "update"])
def test_a_request_that_nobody_awaits_any_more_does_not_begin_anew(provider: Provider, kind: str) -> None:
    if kind == "update":
        provider.library.exists()
    asked = getattr(provider, kind)()
    provider.aws.parent_status = "DELETE_IN_PROGRESS"
    _lose(provider)
    provider.library.asked.clear()
    assert "a later request superseded this one" in asked.fails()
    assert provider.library.asked == []
    assert provider.aws.parameters == {}


@pytest.mark.parametrize("kind", ["create", "update"])
def test_a_request_whose_stack_cannot_be_asked_for_waits(provider: Provider, kind: str) -> None:
    if kind == "update":
        provider.library.exists()
    asked = getattr(provider, kind)()
    _lose(provider)
    provider.aws.unreachable.add("cloudformation")
    assert not asked.poll()
    provider.aws.unreachable.clear()
    assert not asked.poll()
    assert provider.library.changes == [kind]
