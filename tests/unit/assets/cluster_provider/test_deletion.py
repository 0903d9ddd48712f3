"""Delete: our own cluster only, what shows a failure saved first, and done when nothing of ours is left."""

from __future__ import annotations

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import LOG_GROUP, PARAMETER
from tests.unit.assets.cluster_provider.fakes.library import ANOTHER_STACK
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider


def _ends(provider: Provider, asked: Asked) -> None:
    """The cluster goes, and the request with it."""
    assert not asked.poll()
    assert provider.library.cluster.status == "DELETE_IN_PROGRESS"
    assert not asked.poll()
    provider.library.is_gone()
    assert asked.answer() == {"IsComplete": True}


@pytest.mark.parametrize(
    "status", ["CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_FAILED", "CREATE_IN_PROGRESS"]
)
def test_our_cluster_is_deleted_and_waited_for(provider: Provider, status: str) -> None:
    provider.library.exists(status)
    asked = provider.delete()
    assert provider.library.changes == []
    _ends(provider, asked)
    assert provider.library.changes == ["delete"]
    assert provider.aws.log[f"{LOG_GROUP}/progress"][-1] == "Delete training: deleting"


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "CREATE_FAILED", "DELETE_FAILED"])
def test_another_stacks_cluster_is_left_alone_and_that_is_a_success(provider: Provider, status: str) -> None:
    provider.library.exists(status, owner=ANOTHER_STACK)
    assert provider.delete().answer() == {"IsComplete": True}
    assert provider.library.changes == []
    assert provider.aws.objects == {}


def test_a_cluster_that_is_gone_is_a_success(provider: Provider) -> None:
    assert provider.delete().answer() == {"IsComplete": True}
    assert provider.library.changes == []


def test_a_cluster_that_goes_at_that_very_moment_is_a_success(provider: Provider) -> None:
    provider.library.exists()
    asked = provider.delete()
    provider.library.fail("delete", provider.errors.ClusterNotFoundError("gone"))
    assert asked.answer() == {"IsComplete": True}


@pytest.mark.parametrize("status", ["CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED", "CREATE_IN_PROGRESS"])
def test_what_shows_a_failure_is_saved_right_before_the_deletion(provider: Provider, status: str) -> None:
    provider.library.exists(status)
    asked = provider.delete()
    assert provider.aws.objects == {}
    provider.library.fail("delete", provider.throttled())
    assert not asked.poll()
    assert "failures.json" in provider.saved
    assert provider.library.cluster.status == status
    assert provider.stages == ["saving the failure's logs", "deleting"]
    _ends(provider, asked)


def test_a_cluster_that_works_leaves_nothing_behind(provider: Provider) -> None:
    provider.library.exists("CREATE_COMPLETE")
    _ends(provider, provider.delete())
    assert provider.aws.objects == {}


def test_what_a_failed_create_saved_is_saved_once(provider: Provider) -> None:
    create = provider.create()
    create.poll()
    provider.library.becomes("CREATE_FAILED", failures=({"failureCode": "Boot", "failureReason": "script"},))
    create.fails()
    saved = dict(provider.aws.objects)
    provider.aws.console = "another text"
    _ends(provider, provider.delete())
    assert provider.aws.objects == saved
    assert provider.library.changes == ["create", "delete"]


def test_an_event_that_comes_twice_deletes_once(provider: Provider) -> None:
    provider.library.exists()
    provider.delete().poll()
    _ends(provider, provider.delete())
    assert provider.library.changes == ["delete"]


@pytest.mark.parametrize("operation", ["find", "delete"])
def test_a_deletion_survives_throttling(provider: Provider, operation: str) -> None:
    provider.library.exists()
    asked = provider.delete()
    provider.library.fail(operation, provider.throttled(), times=2)
    assert not asked.poll()
    assert not asked.poll()
    _ends(provider, asked)


def test_a_deletion_whose_answer_was_lost_goes_on(provider: Provider) -> None:
    provider.library.exists()
    asked = provider.delete()
    provider.library.fail("delete", provider.throttled(), late=True)
    assert not asked.poll()
    _ends(provider, asked)
    assert provider.library.changes == ["delete"]


@pytest.mark.parametrize("service", ["ssm", "logs", "s3", "cloudformation"])
def test_on_event_asks_nothing_that_could_stop_a_deletion(provider: Provider, service: str) -> None:
    provider.library.exists("CREATE_FAILED")
    provider.aws.unreachable.add(service)
    provider.delete()
    assert provider.library.asked == []


def test_a_deletion_that_failed_says_why(provider: Provider) -> None:
    provider.library.exists()
    asked = provider.delete()
    asked.poll()
    provider.library.events = [
        {"logicalResourceId": "Vpc", "resourceStatus": "DELETE_FAILED", "resourceStatusReason": "in use"}
    ]
    provider.library.becomes("DELETE_FAILED")
    said = asked.fails()
    assert said.startswith("Cluster training is DELETE_FAILED")
    assert said.endswith("Vpc: in use")
    assert provider.library.changes == ["delete"]


def test_a_deletion_that_somebody_elses_hand_began_and_that_failed_says_why(provider: Provider) -> None:
    provider.library.exists("DELETE_IN_PROGRESS")
    asked = provider.delete()
    assert not asked.poll()
    provider.library.becomes("DELETE_FAILED")
    assert "DELETE_FAILED" in asked.fails()


def test_a_deletion_that_failed_before_is_tried_again(provider: Provider) -> None:
    provider.library.exists("DELETE_FAILED")
    _ends(provider, provider.delete())
    assert provider.library.changes == ["delete"]


def test_a_deletion_that_is_refused_says_why(provider: Provider) -> None:
    provider.library.exists()
    asked = provider.delete()
    provider.library.fail("delete", provider.refused("termination protection is on"))
    assert asked.fails() == "termination protection is on"


@pytest.mark.parametrize("configuration", ["", "{", "null"])
def test_a_broken_config_stops_no_deletion(provider: Provider, configuration: str) -> None:
    provider.library.exists("CREATE_FAILED")
    _ends(provider, provider.delete(ClusterConfiguration=configuration))


@pytest.mark.parametrize("service", ["ssm", "logs", "s3", "ec2", "cloudformation"])
def test_no_other_service_that_is_away_stops_a_deletion(provider: Provider, service: str) -> None:
    provider.library.exists("CREATE_FAILED")
    provider.aws.unreachable.add(service)
    asked = provider.delete()
    for _ in range(3):
        assert not asked.poll()
    assert provider.library.cluster.status == "DELETE_IN_PROGRESS"
    provider.library.is_gone()
    assert asked.poll()


def test_a_parameter_that_was_deleted_stops_no_deletion(provider: Provider) -> None:
    provider.library.exists()
    provider.aws.parameters.clear()
    provider.aws.denied["ssm.put_parameter"] = "AccessDeniedException"
    asked = provider.delete()
    assert not asked.poll()
    provider.library.is_gone()
    assert asked.poll()


def test_a_cluster_is_deleted_by_its_name_also_when_cloudformation_made_up_an_id(provider: Provider) -> None:
    provider.library.exists()
    _ends(provider, provider.ask(provider.event("Delete") | {"PhysicalResourceId": "stack-Cluster-1ABC"}))


def test_a_deletion_goes_on_without_the_notes_that_its_beginning_made(provider: Provider) -> None:
    provider.library.exists("CREATE_FAILED")
    asked = provider.delete()
    provider.aws.parameters.clear()
    _ends(provider, asked)
    assert provider.library.changes == ["delete"]


@pytest.mark.parametrize("text", ['{"request_id": "1", "request": "Create", "former_field": 1}', "broken"])
def test_the_notes_of_another_version_stop_no_deletion(provider: Provider, text: str) -> None:
    provider.library.exists()
    provider.aws.parameters[PARAMETER] = text
    _ends(provider, provider.delete())


def test_a_deletion_that_has_ended_leaves_no_notes(provider: Provider) -> None:
    provider.library.exists()
    asked = provider.delete()
    assert not asked.poll()
    assert PARAMETER in provider.aws.parameters
    _ends(provider, provider.delete())
    assert provider.aws.parameters == {}
    assert asked.poll()
    assert provider.aws.parameters == {}


@pytest.mark.parametrize("code", ["AccessDeniedException", "ThrottlingException"])
def test_notes_that_cannot_be_removed_are_no_failure(provider: Provider, code: str) -> None:
    provider.library.exists()
    provider.aws.denied["ssm.delete_parameter"] = code
    _ends(provider, provider.delete())
    assert provider.record_value["request"] == "Delete"


CLEANUPS = ["UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"]


@pytest.mark.parametrize("parent", CLEANUPS)
@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "UPDATE_COMPLETE"])
def test_a_cluster_that_stands_stays_when_its_parent_cleans_up(
    provider: Provider, status: str, parent: str
) -> None:
    provider.library.exists(status)
    asked = provider.delete()
    provider.aws.parent_status = parent
    assert asked.answer() == {"IsComplete": True}
    assert provider.library.changes == []
    assert provider.aws.objects == {}


@pytest.mark.parametrize("status", ["CREATE_FAILED", "UPDATE_FAILED", "DELETE_FAILED"])
def test_a_failed_cluster_is_deleted_also_when_its_parent_cleans_up(provider: Provider, status: str) -> None:
    provider.library.exists(status)
    asked = provider.delete()
    provider.aws.parent_status = CLEANUPS[0]
    _ends(provider, asked)
    assert provider.library.changes == ["delete"]


def test_a_cluster_that_stands_is_not_deleted_before_cloudformation_says_what_it_does(
    provider: Provider,
) -> None:
    provider.library.exists()
    asked = provider.delete()
    provider.aws.unreachable.add("cloudformation")
    assert not asked.poll()
    assert provider.library.changes == []
    provider.aws.unreachable.clear()
    _ends(provider, asked)


@pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "DELETE_COMPLETE", "ROLLBACK_IN_PROGRESS", ""])
def test_a_stack_that_goes_or_was_never_made_cleans_nothing_up(provider: Provider, status: str) -> None:
    provider.aws.parent_status = status
    assert not provider.parent_stack.cleans_up("stack/ours")
