"""The provider's parameter is deleted while it works: it continues from what AWS and the event still say."""

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import PARAMETER
from tests.unit.assets.cluster_provider.fakes.library import STOP, refused_change
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

START, STOPS = "START_REQUESTED", "STOP_REQUESTED"


def _lose(provider: Provider) -> None:
    del provider.aws.parameters[PARAMETER]
    provider.clock.goes_on(minutes=3)


def _ends(provider: Provider, asked: Asked) -> bool:
    provider.library.fleet = {STOPS: "STOPPED", START: "RUNNING"}.get(
        provider.library.fleet, provider.library.fleet
    )
    if provider.library.cluster.is_changing:
        provider.library.becomes(provider.library.cluster.status.replace("IN_PROGRESS", "COMPLETE"))
    return asked.poll()


@pytest.mark.parametrize("polls", [1, 2, 3])
def test_an_update_without_record_restores_the_fleet(provider: Provider, polls: int) -> None:
    provider.library.exists()
    provider.library.wants = [refused_change(STOP)]
    asked = provider.update()
    for _ in range(polls):
        assert not _ends(provider, asked)
    _lose(provider)
    assert any(_ends(provider, asked) for _ in range(6))
    assert provider.library.changes == [STOPS, "update", START]
    assert provider.library.fleet == "RUNNING"
    assert "continuing without the earlier record" in provider.stages


def test_a_fleet_that_somebody_stopped_before_stays_stopped(provider: Provider) -> None:
    provider.library.exists()
    provider.library.fleet = "STOPPED"
    asked = provider.update()
    asked.poll()
    _lose(provider)
    assert any(_ends(provider, asked) for _ in range(4))
    assert provider.library.changes == ["update"]


def test_a_rollback_without_record_starts_the_fleet(provider: Provider) -> None:
    provider.library.exists()
    provider.library.wants = [refused_change(STOP)]
    provider.update().poll()
    rollback = provider.roll_back()
    _lose(provider)
    assert any(_ends(provider, rollback) for _ in range(4))
    assert provider.library.fleet == "RUNNING"


@pytest.mark.parametrize("polls", [1, 2])
def test_a_create_without_record_makes_one_cluster(provider: Provider, polls: int) -> None:
    asked = provider.create()
    for _ in range(polls):
        asked.poll()
    _lose(provider)
    assert not asked.poll()
    assert _ends(provider, asked)
    assert provider.library.changes == ["create"]


def test_an_adopting_create_without_record_updates(provider: Provider) -> None:
    provider.library.exists("CREATE_COMPLETE")
    provider.library.config["Scheduling"]["SlurmQueues"][0]["CapacityType"] = "SPOT"
    asked = provider.create()
    _lose(provider)
    assert any(_ends(provider, asked) for _ in range(4))
    assert provider.library.changes == ["update"]
