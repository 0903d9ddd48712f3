"""Requests that cross: CDK's framework goes on polling for one when CloudFormation has sent the next."""

from functools import partial

import pytest

from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

SUPERSEDED = "a later request superseded this one"


def _end(provider: Provider, delete: Asked) -> None:
    delete.poll()
    provider.library.is_gone()
    assert delete.poll()


def test_a_create_makes_nothing_once_its_delete_has_ended(provider: Provider) -> None:
    create = provider.create()
    create.poll()
    delete = provider.delete()
    delete.poll()
    assert SUPERSEDED in create.fails()
    _end(provider, delete)
    assert not create.poll()
    assert provider.library.changes == ["create", "delete"]


def test_a_failed_create_that_came_twice_makes_nothing_after_its_delete(provider: Provider) -> None:
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


def test_an_update_that_is_rolled_back_updates_nothing_any_more(provider: Provider) -> None:
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
def test_a_poll_whose_notes_are_not_there_yet_changes_nothing(provider: Provider, kind: str) -> None:
    if kind == "update":
        provider.library.exists()
    asked = getattr(provider, kind)()
    provider.aws.parameters.clear()
    provider.library.asked.clear()
    assert not asked.poll()
    assert provider.library.asked == []


@pytest.mark.parametrize("polled", [False, True])
def test_a_create_that_is_overtaken_in_the_middle_of_a_poll_leaves_no_cluster(
    provider: Provider, polled: bool
) -> None:
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


def test_a_rollback_that_comes_in_the_middle_of_a_poll_goes_on(provider: Provider) -> None:
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
def test_the_physical_id_is_the_clusters_name_and_stays_it(provider: Provider, kind: str) -> None:
    if kind != "create":
        provider.library.exists()
    assert getattr(provider, kind)().event["PhysicalResourceId"] == "training"


@pytest.mark.parametrize("kind", ["create", "update"])
def test_an_answer_of_no_says_nothing_more_since_the_framework_takes_nothing_more(
    provider: Provider, kind: str
) -> None:
    if kind == "update":
        provider.library.exists()
    assert getattr(provider, kind)().answer() == {"IsComplete": False}


def test_a_cluster_that_stands_but_cannot_be_described_is_asked_for_again(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    provider.library.fail("find", provider.throttled(), after=1)  # the call that asks for the head node
    assert not asked.poll()
    assert asked.poll()


def test_a_create_that_is_delivered_again_after_an_update_changes_nothing(provider: Provider) -> None:
    provider.create().poll()
    provider.library.becomes("CREATE_COMPLETE")
    provider.update()
    before = provider.record_value
    provider.library.asked.clear()
    assert SUPERSEDED in provider.refuses(provider.create)
    assert provider.library.asked == []
    assert provider.record_value == before


def test_an_update_that_is_delivered_again_after_the_next_changes_nothing(provider: Provider) -> None:
    provider.library.exists()
    provider.update(request="Update-1")
    provider.update(request="Update-2")
    provider.roll_back()
    for request in ("Update-1", "Update-2"):
        assert SUPERSEDED in provider.refuses(partial(provider.update, request=request))
    assert provider.record_value["request_id"] == "Rollback-1"


def test_a_delete_is_heeded_even_when_it_is_delivered_again(provider: Provider) -> None:
    provider.library.exists()
    provider.delete()
    provider.update()
    assert not provider.delete().poll()
    assert provider.library.changes == ["delete"]
