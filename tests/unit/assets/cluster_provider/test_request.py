"""Requests that cross: CDK's framework goes on polling for one when CloudFormation has sent the next."""

from functools import partial

import pytest

from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

SUPERSEDED = "a later request superseded this one"


def _end(provider: Provider, delete: Asked) -> None:
    delete.poll()
    provider.library.is_gone()
    assert delete.poll()


def test_a_create_after_its_delete_makes_nothing(provider: Provider) -> None:
    create = provider.create()
    create.poll()
    delete = provider.delete()
    delete.poll()
    assert SUPERSEDED in create.fails()
    _end(provider, delete)
    assert not create.poll()
    assert provider.library.changes == ["create", "delete"]


def test_a_repeated_create_makes_nothing_after_delete(provider: Provider) -> None:
    first, second = provider.create(), provider.create()
    first.poll()
    provider.library.becomes("CREATE_FAILED")
    first.fails()
    delete = provider.delete()
    delete.poll()
    assert SUPERSEDED in second.fails()
    _end(provider, delete)
    assert not second.poll()
    assert provider.library.changes == ["create", "delete"]


def test_a_rolled_back_update_updates_nothing(provider: Provider) -> None:
    provider.library.exists()
    first, second = provider.update(), provider.update()
    first.poll()
    provider.library.becomes("UPDATE_FAILED")
    first.fails()
    rollback = provider.roll_back()
    rollback.poll()
    assert SUPERSEDED in second.fails()
    assert provider.library.changes == ["update"]
    assert rollback.poll()


@pytest.mark.parametrize("kind", ["create", "update"])
def test_a_poll_before_its_record_changes_nothing(provider: Provider, kind: str) -> None:
    if kind == "update":
        provider.library.exists()
    asked = getattr(provider, kind)()
    provider.aws.parameters.clear()
    provider.library.asked.clear()
    assert not asked.poll()
    assert provider.library.asked == []


@pytest.mark.parametrize("polled", [False, True])
def test_an_overtaken_create_leaves_no_cluster(provider: Provider, polled: bool) -> None:
    create, deletes, ended = provider.create(), list[Asked](), list[bool]()

    def overtake() -> None:
        deletes.append(provider.delete())
        ended.append(polled and deletes[0].poll())

    provider.library.meanwhile = overtake
    try:
        for _ in range(3):
            create.poll()
    except RuntimeError as error:
        assert SUPERSEDED in str(error)
    if not ended[0]:
        deletes[0].poll()
    assert provider.library.changes == ["create", "delete"]


def test_a_rollback_during_a_poll_continues(provider: Provider) -> None:
    provider.library.exists()
    update, rollbacks = provider.update(), list[Asked]()
    provider.library.meanwhile = lambda: rollbacks.append(provider.roll_back())
    try:
        update.poll()
    except RuntimeError as error:
        assert SUPERSEDED in str(error)
    provider.library.becomes("UPDATE_COMPLETE")
    (rollback,) = rollbacks
    assert not rollback.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert rollback.poll()
    assert provider.library.changes == ["update", "update"]


@pytest.mark.parametrize("kind", ["create", "update", "delete"])
def test_the_physical_id_stays_the_clusters_name(provider: Provider, kind: str) -> None:
    if kind != "create":
        provider.library.exists()
    assert getattr(provider, kind)().event["PhysicalResourceId"] == "training"


@pytest.mark.parametrize("kind", ["create", "update"])
def test_an_incomplete_answer_has_no_data(provider: Provider, kind: str) -> None:
    if kind == "update":
        provider.library.exists()
    assert getattr(provider, kind)().answer() == {"IsComplete": False}


def test_an_undescribed_cluster_is_read_again(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    provider.library.fail("find", provider.throttled(), after=1)  # the call that asks for the head node
    assert not asked.poll()
    assert asked.poll()


def test_a_late_create_changes_nothing(provider: Provider) -> None:
    provider.create().poll()
    provider.library.becomes("CREATE_COMPLETE")
    provider.update()
    before = provider.record_value
    provider.library.asked.clear()
    assert SUPERSEDED in provider.refuses(provider.create)
    assert provider.library.asked == []
    assert provider.record_value == before


def test_a_late_update_changes_nothing(provider: Provider) -> None:
    provider.library.exists()
    provider.update(request="Update-1")
    provider.update(request="Update-2")
    provider.roll_back()
    for request in ("Update-1", "Update-2"):
        assert SUPERSEDED in provider.refuses(partial(provider.update, request=request))
    assert provider.record_value["request_id"] == "Rollback-1"


def test_a_repeated_delete_deletes(provider: Provider) -> None:
    provider.library.exists()
    provider.delete()
    provider.update()
    assert not provider.delete().poll()
    assert provider.library.changes == ["delete"]
