"""Create: checked first, made by is_complete, explained when it fails, and never another's cluster."""

from __future__ import annotations

import json

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import BUCKET
from tests.unit.assets.cluster_provider.fakes.library import (
    ANOTHER_STACK,
    HEAD_NODE,
    OWNER_TAG,
    STACK,
)
from tests.unit.assets.cluster_provider.fakes.provider import Provider

BOOT_FAILED = {"failureCode": "HeadNodeBootstrapFailure", "failureReason": "20-mount-storage.sh ended as 1"}


def test_a_config_that_is_refused_makes_nothing_and_names_errors_before_warnings(provider: Provider) -> None:
    provider.library.fail(
        "check_create",
        provider.refused(
            "Invalid cluster configuration.",
            configuration_validation_errors=[
                {"level": "WARNING", "type": "B", "message": "maybe"},
                {"level": "ERROR", "type": "A", "message": "no"},
            ],
        ),
    )
    said = provider.refuses(provider.create)
    assert said == "Invalid cluster configuration. | ERROR A: no | WARNING B: maybe"
    assert provider.library.changes == []
    assert provider.aws.parameters == {}, "no Delete comes for it, which would remove the notes"


def test_a_create_that_comes_twice_and_is_refused_then_keeps_the_notes_of_the_first(
    provider: Provider,
) -> None:
    provider.create()
    provider.library.fail("find", provider.refused("no longer"))
    provider.refuses(provider.create)
    assert provider.record_value["request"] == "Create"


def test_a_cluster_is_made_by_is_complete_and_not_by_on_event(provider: Provider) -> None:
    asked = provider.create()
    assert asked.event["PhysicalResourceId"] == "training"
    assert provider.library.changes == []
    assert not asked.poll()
    assert provider.library.changes == ["create"]
    assert not asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    assert asked.answer() == {"IsComplete": True, "Data": {"HeadNodeInstanceId": HEAD_NODE}}
    assert provider.library.changes == ["create"]


def test_what_is_made_is_what_was_checked_with_the_mark_of_the_stack_on_it(provider: Provider) -> None:
    provider.create().poll()
    assert provider.library.config == provider.library.checked
    assert provider.library.config["Tags"] == [{"Key": OWNER_TAG, "Value": STACK}]
    assert provider.library.cluster.tags == {OWNER_TAG: STACK}


def test_the_tags_of_the_config_stay_beside_the_mark(provider: Provider) -> None:
    own = {"Key": "team", "Value": "language"}
    provider.create(ClusterConfiguration=json.dumps({"Tags": [own]})).poll()
    assert provider.library.cluster.tags == {"team": "language", OWNER_TAG: STACK}


def test_a_cluster_without_a_head_node_has_none_to_name(provider: Provider) -> None:
    asked = provider.create()
    provider.library.exists("CREATE_COMPLETE", head_node_instance_id=None)
    assert asked.answer()["Data"] == {"HeadNodeInstanceId": "none"}


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "CREATE_COMPLETE", "UPDATE_COMPLETE"])
def test_an_event_that_comes_twice_makes_one_cluster(provider: Provider, status: str) -> None:
    provider.create().poll()
    provider.library.becomes(status)
    again = provider.create()
    assert again.poll() == (status != "CREATE_IN_PROGRESS")
    assert provider.library.changes == ["create"]


def test_another_stacks_cluster_of_that_name_is_not_touched(provider: Provider) -> None:
    provider.library.exists(owner=ANOTHER_STACK)
    said = provider.refuses(provider.create)
    assert "was not made by this stack. It was not touched." in said
    assert "-c cluster_name=training-2" in said
    assert provider.library.changes == []


def test_a_cluster_without_a_mark_is_nobodys_to_touch(provider: Provider) -> None:
    provider.library.exists("CREATE_FAILED", tags={})
    assert "not made by this stack" in provider.refuses(provider.create)
    assert provider.library.changes == []


def test_another_stacks_cluster_that_came_after_the_check_is_not_touched(provider: Provider) -> None:
    asked = provider.create()
    provider.library.exists(owner=ANOTHER_STACK)
    assert "not made by this stack" in asked.fails()
    assert provider.library.changes == []


@pytest.mark.parametrize("operation", ["find", "check_create"])
def test_a_check_that_aws_does_not_answer_makes_nothing(provider: Provider, operation: str) -> None:
    provider.library.fail(operation, provider.throttled())
    said = provider.refuses(provider.create)
    assert "AWS gave no answer; nothing was changed" in said
    assert "Rate exceeded" in said
    assert provider.library.changes == []


def test_a_throttled_create_is_tried_again_later(provider: Provider) -> None:
    asked = provider.create()
    provider.library.fail("create", provider.throttled(), times=2)
    assert [asked.poll() for _ in range(3)] == [False] * 3
    assert provider.library.changes == ["create"] * 3
    assert provider.library.cluster.status == "CREATE_IN_PROGRESS"


def test_a_throttled_poll_is_no_failure(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.fail("find", provider.throttled())
    assert not asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    assert asked.poll()


def test_a_create_that_is_refused_says_why_and_leaves_nothing(provider: Provider) -> None:
    asked = provider.create()
    provider.library.fail("create", provider.refused("no right to iam:CreateRole"))
    assert asked.fails() == "no right to iam:CreateRole"
    assert provider.library.changes == ["create"]
    assert provider.library.cluster is None


@pytest.mark.parametrize("kind", ["throttled", "refused"])
def test_a_cluster_whose_answer_was_lost_is_removed_and_made_anew(provider: Provider, kind: str) -> None:
    asked = provider.create()
    provider.library.fail("create", getattr(provider, kind)(), late=True)
    for _ in range(2):
        assert not asked.poll()
    assert provider.library.cluster.status == "DELETE_IN_PROGRESS"
    assert not asked.poll()
    assert provider.library.changes == ["create", "delete"]
    provider.library.is_gone()
    assert not asked.poll()
    assert provider.library.changes == ["create", "delete", "create"]
    provider.library.becomes("CREATE_COMPLETE")
    assert asked.poll()


@pytest.mark.parametrize("operation", ["find", "stored_config"])
def test_a_cluster_whose_answer_was_lost_is_removed_also_when_aws_stays_silent_for_a_while(
    provider: Provider, operation: str
) -> None:
    asked = provider.create()
    provider.library.fail("create", provider.throttled(), late=True)
    provider.library.fail(operation, provider.throttled(), after=int(operation == "find"))
    for _ in range(3):
        assert not asked.poll()
    assert provider.library.changes == ["create", "delete"]


def test_another_stacks_cluster_that_came_in_between_is_not_removed(provider: Provider) -> None:
    asked = provider.create()
    provider.library.meanwhile = lambda: provider.library.exists(owner=ANOTHER_STACK)
    assert "already exists" in asked.fails()
    assert provider.library.changes == ["create"]


def test_two_polls_at_once_make_one_cluster_and_remove_none(provider: Provider) -> None:
    asked, twice = provider.create(), provider.create()
    provider.library.meanwhile = twice.poll
    asked.poll()
    assert provider.library.cluster.status == "CREATE_IN_PROGRESS"
    assert "delete" not in provider.library.changes


def test_a_config_is_validated_once_however_often_it_is_asked_for(provider: Provider) -> None:
    provider.create()
    asked = provider.create()
    provider.library.fail("create", provider.throttled(), times=2)
    for _ in range(3):
        assert not asked.poll()
    assert provider.library.asked.count("check_create") == 1


def test_a_failed_cluster_says_why_and_where_more_is(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_FAILED", failures=(BOOT_FAILED,))
    provider.library.events = [
        {"logicalResourceId": "Late", "resourceStatus": "CREATE_FAILED", "resourceStatusReason": "cancelled"},
        {"logicalResourceId": "Fine", "resourceStatus": "CREATE_COMPLETE"},
        {"logicalResourceId": "HeadNode", "resourceStatus": "CREATE_FAILED", "resourceStatusReason": "full"},
    ]
    said = asked.fails()
    assert said.split(" | ") == [
        "Cluster training is CREATE_FAILED",
        "HeadNodeBootstrapFailure: 20-mount-storage.sh ended as 1",
        f"Saved: s3://{BUCKET}/logs/training/2026-01-01T00-00-01+00-00-CREATE_FAILED/",
        "Log group: /aws/parallelcluster/training-1",
        "More: pcluster get-cluster-stack-events --cluster-name training",
        "HeadNode: full",
        "Late: cancelled",
    ]
    assert json.loads(provider.saved["failures.json"])["failures"] == [BOOT_FAILED]
    assert provider.library.changes == ["create"]


def test_a_failure_with_hundreds_of_events_fits_into_cloudformations_answer(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_FAILED", failures=(BOOT_FAILED,))
    event = {
        "logicalResourceId": "R",
        "resourceStatus": "CREATE_FAILED",
        "resourceStatusReason": "“no” " * 99,
    }
    provider.library.events = [event] * 100
    said = asked.fails()
    assert len(json.dumps(said)) < 4096 - 1000
    assert "HeadNodeBootstrapFailure" in said
    assert "Log group: /aws" in said


def test_a_failure_is_told_even_when_nothing_about_it_can_be_had(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_FAILED")
    provider.aws.unreachable |= {"s3"}
    for operation in ("stack_events", "log_group"):
        provider.library.fail(operation, provider.throttled())
    assert asked.fails() == (
        "Cluster training is CREATE_FAILED | More: pcluster get-cluster-stack-events --cluster-name training"
    )


def test_a_cluster_that_somebody_deletes_meanwhile_is_told_and_not_made_again(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.is_gone()
    assert "disappeared while it was being created" in asked.fails()
    assert provider.library.changes == ["create"]
