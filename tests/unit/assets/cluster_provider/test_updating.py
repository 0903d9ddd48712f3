"""Update: checked first; live where the library allows it; the impossible is refused with the way round."""

from __future__ import annotations

import json

import pytest

from tests.unit.assets.cluster_provider.fakes.library import (
    ANOTHER_STACK,
    CHANGE,
    NAME,
    NEVER,
    STOP,
    config,
    refused_change,
)
from tests.unit.assets.cluster_provider.fakes.provider import Provider


@pytest.fixture(autouse=True)
def _cluster_stands(provider: Provider) -> None:
    provider.library.exists("CREATE_COMPLETE")


def test_an_update_is_checked_before_it_is_made(provider: Provider) -> None:
    provider.update().poll()
    dry_run, update = provider.library.asked.index("check_update"), provider.library.asked.index("update")
    assert dry_run < update


def test_a_live_change_is_one_update_and_the_fleet_runs_on(provider: Provider) -> None:
    asked = provider.update()
    assert provider.library.changes == []
    assert not asked.poll()
    assert not asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert asked.poll()
    assert provider.library.changes == ["update"]
    assert provider.library.config["Scheduling"]["SlurmQueues"] == [{"CapacityType": "SPOT"}]


def test_the_mark_of_the_stack_stays_on_an_updated_cluster(provider: Provider) -> None:
    before = provider.library.config["Tags"]
    provider.update().poll()
    assert provider.library.config["Tags"] == before


def test_what_the_update_changes_and_what_the_validators_say_is_noted(provider: Provider) -> None:
    provider.library.validation = ("WARNING B: maybe",)
    provider.update().poll()
    assert provider.record_value["messages"] == f"{CHANGE}\nWARNING B: maybe"


def test_an_update_without_changes_succeeds_and_asks_for_none(provider: Provider) -> None:
    asked = provider.ask(provider.event("Update"))
    assert not asked.poll()
    assert asked.poll()
    assert provider.library.changes == []
    assert "update without changes" not in provider.library.asked  # it takes a minute


def test_an_update_without_changes_succeeds_on_a_cluster_whose_last_update_failed(provider: Provider) -> None:
    provider.library.becomes("UPDATE_FAILED")
    asked = provider.ask(provider.event("Update"))
    assert not asked.poll()
    assert asked.poll()


def test_a_failed_update_says_why_and_saves_what_shows_it(provider: Provider) -> None:
    asked = provider.update()
    asked.poll()
    provider.library.events = [
        {"logicalResourceId": "Queue", "resourceStatus": "UPDATE_FAILED", "resourceStatusReason": "quota"}
    ]
    provider.library.becomes("UPDATE_FAILED")
    said = asked.fails()
    assert said.startswith("Cluster training is UPDATE_FAILED | Saved: s3://bucket/logs/training/")
    assert said.endswith("Queue: quota")
    assert "continue-update-rollback" not in said
    assert "stack-events.json" in provider.saved


def test_a_cluster_stack_that_could_not_roll_back_says_what_to_type(provider: Provider) -> None:
    asked = provider.update()
    asked.poll()
    provider.library.becomes("UPDATE_FAILED", stack_status="UPDATE_ROLLBACK_FAILED")
    said = asked.fails()
    assert "Type: aws cloudformation continue-update-rollback --stack-name training" in said


def test_an_impossible_change_is_refused_with_a_second_cluster_as_the_way_round(provider: Provider) -> None:
    provider.library.impossible = [refused_change(NEVER, parameter="HeadNode.InstanceType")]
    said = provider.update().fails()
    assert said.startswith("training cannot take this change; nothing was changed.")
    assert "npx cdk deploy TrainingClusterStack -c cluster_name=training-2" in said
    assert f"HeadNode.InstanceType: ONDEMAND -> SPOT: {NEVER}" in said
    assert provider.library.changes == []


def test_a_change_that_is_impossible_in_part_stops_nothing(provider: Provider) -> None:
    provider.library.impossible = [refused_change(STOP), refused_change(NEVER)]
    assert "cannot take this change" in provider.update().fails()
    assert provider.library.changes == []


def test_a_config_that_is_refused_changes_nothing(provider: Provider) -> None:
    problem = {"level": "ERROR", "type": "A", "message": "no such subnet"}
    refused = provider.refused("Invalid.", configuration_validation_errors=[problem])
    provider.library.fail("check_update", refused)
    assert provider.update().fails() == "Invalid. | ERROR A: no such subnet"
    assert provider.library.changes == []


def test_a_rename_is_refused_with_the_deploy_that_makes_another(provider: Provider) -> None:
    said = provider.refuses(lambda: provider.ask(provider.event("Update", ClusterName="other")))
    assert "cannot be renamed (training to other). Nothing was changed." in said
    assert "-c cluster_name=other" in said
    assert provider.library.asked == []


def test_an_event_that_comes_twice_updates_once(provider: Provider) -> None:
    asked = provider.update()
    asked.poll()
    again = provider.update()
    assert not again.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert asked.poll()
    assert again.poll()
    assert provider.library.changes == ["update"]


@pytest.mark.parametrize("kind", ["throttled", "refused"])
def test_an_update_whose_answer_was_lost_goes_on(provider: Provider, kind: str) -> None:
    asked = provider.update()
    provider.library.fail("update", getattr(provider, kind)(), late=True)
    assert not asked.poll()
    provider.library.becomes("UPDATE_COMPLETE")
    assert asked.poll()
    assert provider.library.changes == ["update"]


@pytest.mark.parametrize("operation", ["find", "check_update", "update"])
def test_an_update_survives_throttling(provider: Provider, operation: str) -> None:
    asked = provider.update()
    provider.library.fail(operation, provider.throttled(), times=2)
    assert [asked.poll() for _ in range(3)] == [False] * 3
    assert provider.library.cluster.status == "UPDATE_IN_PROGRESS"
    provider.library.becomes("UPDATE_COMPLETE")
    assert asked.poll()


def test_on_event_asks_for_the_fleet_alone_and_does_without_an_answer(provider: Provider) -> None:
    assert provider.update().event["FleetBefore"] == "RUNNING"
    assert provider.library.asked == ["fleet_status"]
    for error in (provider.throttled(), provider.refused("there is no item")):
        provider.library.fail("fleet_status", error)
        assert provider.update().event["FleetBefore"] is None


def test_an_update_that_is_refused_after_all_says_why(provider: Provider) -> None:
    asked = provider.update()
    provider.library.fail("update", provider.refused("the template is too large"))
    assert asked.fails() == "the template is too large"


def test_a_cluster_that_somebody_deleted_is_checked_and_made_again(provider: Provider) -> None:
    provider.library.is_gone()
    asked = provider.update()
    assert not asked.poll()
    assert provider.library.asked[-2:] == ["check_create", "create"]
    assert not asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    assert asked.poll()
    assert provider.library.changes == ["create"]


def test_a_config_that_is_refused_for_a_deleted_cluster_makes_nothing(provider: Provider) -> None:
    provider.library.is_gone()
    provider.library.fail("check_create", provider.refused("Invalid cluster configuration."))
    assert provider.update().fails() == "Invalid cluster configuration."
    assert provider.library.changes == []


def test_a_cluster_made_again_that_fails_says_so(provider: Provider) -> None:
    provider.library.is_gone()
    asked = provider.update()
    asked.poll()
    provider.library.becomes("CREATE_FAILED")
    assert "Cluster training is CREATE_FAILED" in asked.fails()


def test_a_cluster_that_never_stood_is_removed_and_made_again(provider: Provider) -> None:
    provider.library.becomes("CREATE_FAILED")
    asked = provider.update()
    assert not asked.poll()
    assert not asked.poll()
    assert provider.library.changes == ["delete"]
    assert provider.stages[-1] == "removing the failed former cluster"
    provider.library.is_gone()
    assert not asked.poll()
    assert not asked.poll()
    provider.library.becomes("CREATE_COMPLETE")
    assert asked.poll()
    assert provider.library.changes == ["delete", "create"]
    assert provider.library.config["Scheduling"]["SlurmQueues"] == [{"CapacityType": "SPOT"}]


def test_a_cluster_that_was_being_made_and_fails_is_made_again(provider: Provider) -> None:
    provider.library.becomes("CREATE_IN_PROGRESS")
    asked = provider.update()
    assert not asked.poll()
    provider.library.becomes("CREATE_FAILED")
    assert not asked.poll()
    provider.library.is_gone()
    assert not asked.poll()
    assert provider.library.changes == ["delete", "create"]


def test_a_cluster_made_again_that_fails_is_explained_and_not_made_a_third_time(provider: Provider) -> None:
    provider.library.becomes("CREATE_FAILED")
    asked = provider.update()
    asked.poll()
    provider.library.is_gone()
    asked.poll()
    provider.library.becomes("CREATE_FAILED")
    assert "Cluster training is CREATE_FAILED | Saved: " in asked.fails()
    assert provider.library.changes == ["delete", "create"]


def test_a_cluster_that_goes_at_that_very_moment_is_made_again(provider: Provider) -> None:
    asked = provider.update()
    provider.library.fail("check_update", provider.errors.ClusterNotFoundError("gone"))
    assert not asked.poll()
    provider.library.is_gone()
    assert not asked.poll()
    assert provider.library.changes == ["create"]


def test_a_cluster_that_goes_after_the_check_is_checked_before_it_is_made_again(provider: Provider) -> None:
    provider.library.becomes("DELETE_IN_PROGRESS")
    asked = provider.update()
    asked.poll()
    provider.library.is_gone()
    asked.poll()
    assert provider.library.changes == ["create"]
    assert provider.library.checked is not None


def test_a_cluster_that_disappears_in_its_update_is_told(provider: Provider) -> None:
    asked = provider.update()
    asked.poll()
    provider.library.is_gone()
    assert "disappeared" in asked.fails()


def test_draining_is_the_librarys_own_strategy_and_only_in_updates(provider: Provider) -> None:
    drained = provider.update(on_busy="drain")
    drained.poll()
    assert provider.library.config["Scheduling"]["SlurmSettings"] == {"QueueUpdateStrategy": "DRAIN"}
    provider.library.is_gone()
    provider.create(request="Create-2", OnBusy="drain").poll()
    assert provider.library.config["Scheduling"]["SlurmSettings"] == {}


def test_an_update_asks_for_no_strategy_unless_told_to_drain(provider: Provider) -> None:
    provider.update(on_busy="stop").poll()
    assert provider.library.config["Scheduling"]["SlurmSettings"] == {}


def test_an_update_without_a_word_on_busy_nodes_fails_on_them(provider: Provider) -> None:
    event = provider.event("Update", ClusterConfiguration=json.dumps(config("SPOT")))
    del event["ResourceProperties"]["OnBusy"]
    provider.library.wants, provider.library.running = [refused_change(STOP)], 1
    provider.aws.unreachable.add("ssm.send_command")
    assert "1 compute nodes of training run" in provider.ask(event).fails()


BOUNDARY, ANOTHER_BOUNDARY = ("arn:aws:iam::123456789012:policy/a", "arn:aws:iam::123456789012:policy/b")


def test_a_cluster_whose_stored_config_is_gone_is_refused_and_told_to_be_made_anew(
    provider: Provider,
) -> None:
    provider.library.files = False
    said = provider.update().fails()
    assert "no longer in ParallelCluster's bucket" in said
    assert f"npx cdk destroy TrainingClusterStack -c cluster_name={NAME} and then the deploy again" in said
    assert provider.library.changes == []


def test_a_cluster_without_a_head_node_is_told_to_be_made_anew(provider: Provider) -> None:
    provider.library.fail("check_update", provider.refused("Unable to retrieve head node information."))
    said = provider.update().fails()
    assert said.startswith(f"The head node of {NAME} was terminated")
    assert f"npx cdk destroy TrainingClusterStack -c cluster_name={NAME} and then the deploy again" in said


@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "CREATE_FAILED", "UPDATE_IN_PROGRESS"])
def test_another_stacks_cluster_is_not_updated(provider: Provider, status: str) -> None:
    provider.library.exists(status, owner=ANOTHER_STACK)
    assert "not made by this stack" in provider.update().fails()
    assert provider.library.changes == []


def test_another_stacks_cluster_that_came_after_the_check_is_not_updated(provider: Provider) -> None:
    asked = provider.update()
    provider.library.exists(owner=ANOTHER_STACK)
    assert "not made by this stack" in asked.fails()
    assert provider.library.changes == []


def test_an_update_waits_for_one_that_is_under_way(provider: Provider) -> None:
    provider.library.becomes("UPDATE_IN_PROGRESS")
    asked = provider.update()
    assert "check_update" not in provider.library.asked
    assert not asked.poll()
    assert provider.library.changes == []
    provider.library.becomes("UPDATE_COMPLETE")
    assert not asked.poll()
    assert provider.library.changes == ["update"]
