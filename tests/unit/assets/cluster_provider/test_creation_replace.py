"""Create where a cluster of ours stands already: what failed is replaced, what stands is adopted."""

from __future__ import annotations

import json

import pytest

from tests.unit.assets.cluster_provider.fakes.library import (
    HEAD_NODE,
    NEVER,
    config,
    refused_change,
)
from tests.unit.assets.cluster_provider.fakes.provider import Asked, Provider

BOOT_FAILED = {"failureCode": "HeadNodeBootstrapFailure", "failureReason": "20-mount-storage.sh ended as 1"}


@pytest.mark.parametrize("status", ["CREATE_FAILED", "DELETE_FAILED"])
def test_a_failed_cluster_that_no_rollback_kept_is_replaced(provider: Provider, status: str) -> None:
    provider.library.exists(status)
    asked = provider.create()
    assert "check_create" not in provider.library.asked  # the library does not validate a taken name
    assert not asked.poll()
    assert not asked.poll()
    assert provider.library.changes == ["delete"]
    provider.library.is_gone()
    assert not asked.poll()
    assert provider.library.asked[-2:] == ["check_create", "create"]
    assert not asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    assert asked.poll()
    assert provider.library.changes == ["delete", "create"]


def test_a_cluster_made_in_place_of_a_failed_one_may_fail_too(provider: Provider) -> None:
    provider.library.exists("CREATE_FAILED")
    asked = provider.create()
    asked.poll()
    provider.library.is_gone()
    asked.poll()
    provider.library.becomes("CREATE_FAILED", failures=(BOOT_FAILED,))
    assert "HeadNodeBootstrapFailure" in asked.fails()
    assert provider.library.changes == ["delete", "create"]


def test_a_config_that_is_refused_once_the_name_is_free_makes_nothing(provider: Provider) -> None:
    provider.library.exists("CREATE_FAILED")
    asked = provider.create()
    asked.poll()
    provider.library.is_gone()
    provider.library.fail("check_create", provider.refused("Invalid cluster configuration."))
    assert asked.fails() == "Invalid cluster configuration."
    assert provider.library.changes == ["delete"]


@pytest.mark.parametrize("operation", ["check_create", "create"])
def test_a_replacement_survives_throttling(provider: Provider, operation: str) -> None:
    provider.library.exists("CREATE_FAILED")
    asked = provider.create()
    provider.library.fail("delete", provider.throttled())
    assert not asked.poll()
    assert not asked.poll()
    provider.library.is_gone()
    provider.library.fail(operation, provider.throttled())
    assert not asked.poll()
    assert not asked.poll()
    assert provider.library.cluster.status == "CREATE_IN_PROGRESS"
    assert provider.library.asked.count("check_create") == (2 if operation == "check_create" else 1)


def test_a_replacement_that_could_not_be_noted_is_not_removed_again(
    provider: Provider,
) -> None:
    provider.library.exists("CREATE_FAILED")
    asked = provider.create()
    asked.poll()
    provider.library.is_gone()
    provider.aws.denied["ssm.put_parameter"] = "ThrottlingException"
    assert not asked.poll()
    provider.aws.denied.clear()
    assert not asked.poll()
    assert provider.library.changes == ["delete", "create"]
    provider.library.becomes("CREATE_COMPLETE")
    assert asked.poll()


def test_a_failed_cluster_that_goes_at_that_very_moment_is_replaced(provider: Provider) -> None:
    provider.library.exists("CREATE_FAILED")
    asked = provider.create()
    provider.library.fail("delete", provider.errors.ClusterNotFoundError("gone"))
    assert not asked.poll()
    provider.library.is_gone()
    assert not asked.poll()
    assert provider.library.cluster.status == "CREATE_IN_PROGRESS"


def test_a_failed_cluster_that_cannot_be_removed_says_so(provider: Provider) -> None:
    provider.library.exists("CREATE_FAILED")
    asked = provider.create()
    asked.poll()
    provider.library.becomes("DELETE_FAILED")
    assert "DELETE_FAILED" in asked.fails()


def test_a_cluster_of_ours_that_is_being_deleted_by_hand_is_waited_for(provider: Provider) -> None:
    provider.library.exists("DELETE_IN_PROGRESS")
    asked = provider.create()
    assert not asked.poll()
    provider.library.is_gone()
    assert not asked.poll()
    assert provider.library.changes == ["create"]


def test_a_cluster_of_ours_that_is_being_deleted_is_validated_when_its_name_is_free(
    provider: Provider,
) -> None:
    provider.library.exists("DELETE_IN_PROGRESS")
    asked = provider.create()
    assert "check_create" not in provider.library.asked
    asked.poll()
    provider.library.is_gone()
    asked.poll()
    assert provider.library.asked[-2:] == ["check_create", "create"]


def test_a_deletion_by_hand_that_fails_is_tried_once_more_and_then_explained(provider: Provider) -> None:
    provider.library.exists("DELETE_IN_PROGRESS")
    asked = provider.create()
    assert not asked.poll()
    provider.library.becomes("DELETE_FAILED")
    assert not asked.poll()
    assert provider.library.changes == ["delete"]
    provider.library.becomes("DELETE_FAILED")
    assert "Cluster training is DELETE_FAILED | Saved: " in asked.fails()
    assert provider.library.changes == ["delete"]


def test_a_cluster_deleted_by_hand_while_it_is_made_is_told_once_it_is_gone(
    provider: Provider,
) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("DELETE_IN_PROGRESS")
    assert not asked.poll()
    provider.library.is_gone()
    assert "disappeared while it was being created" in asked.fails()
    assert provider.library.changes == ["create"]


def _left_from_before(provider: Provider, capacity: str) -> Asked:
    """A create that finds a cluster of ours which stands."""
    provider.library.exists()
    return provider.create(ClusterConfiguration=json.dumps(config(capacity)))


def test_a_cluster_of_ours_that_stands_is_adopted_and_updated(provider: Provider) -> None:
    asked = _left_from_before(provider, "SPOT")
    assert provider.record_value["adopts"]
    assert provider.library.changes == []
    assert not asked.poll()
    assert provider.library.changes == ["update"]
    assert not asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert asked.answer() == {"IsComplete": True, "Data": {"HeadNodeInstanceId": HEAD_NODE}}
    assert provider.library.config["Scheduling"]["SlurmQueues"] == [{"CapacityType": "SPOT"}]


def test_an_adopted_cluster_that_has_this_config_is_left_alone(provider: Provider) -> None:
    asked = _left_from_before(provider, "ONDEMAND")
    assert not asked.poll()
    assert asked.poll()
    assert provider.library.changes == []


def test_an_adopted_cluster_whose_update_is_refused_says_why(provider: Provider) -> None:
    provider.library.impossible = [refused_change(NEVER)]
    asked = _left_from_before(provider, "SPOT")
    assert "cannot take this change" in asked.fails()
    assert provider.library.changes == []


def test_an_adopted_cluster_whose_update_fails_says_why(provider: Provider) -> None:
    asked = _left_from_before(provider, "SPOT")
    asked.poll()
    provider.library.becomes("UPDATE_FAILED")
    assert "Cluster training is UPDATE_FAILED | Saved: " in asked.fails()


def test_a_create_that_comes_twice_adopts_nothing(provider: Provider) -> None:
    provider.create().poll()
    provider.library.becomes("CREATE_COMPLETE")
    assert provider.create().poll()
    assert not provider.record_value["adopts"]
    assert "check_update" not in " ".join(provider.library.asked)
