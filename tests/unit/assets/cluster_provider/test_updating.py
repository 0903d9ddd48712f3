"""Messages and strategies of updates; states.txt has their steps."""

import json

import pytest

from tests.unit.assets.cluster_provider.fakes.library import (
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


def test_the_mark_stays_on_an_updated_cluster(provider: Provider) -> None:
    before = provider.library.config["Tags"]
    provider.update().poll()
    assert provider.library.config["Tags"] == before


def test_changes_and_validators_messages_are_recorded(provider: Provider) -> None:
    provider.library.validation = ("WARNING B: maybe",)
    provider.update().poll()
    assert provider.record_value["messages"] == f"{CHANGE}\nWARNING B: maybe"


def test_a_failed_update_names_reasons_and_logs(provider: Provider) -> None:
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


def test_an_impossible_change_proposes_a_second_cluster(provider: Provider) -> None:
    provider.library.impossible = [refused_change(NEVER, parameter="HeadNode.InstanceType")]
    said = provider.update().fails()
    assert said.startswith("training cannot take this change; nothing was changed.")
    assert "npx cdk deploy TrainingClusterStack -c cluster_name=training-2" in said
    assert f"HeadNode.InstanceType: ONDEMAND -> SPOT: {NEVER}" in said
    assert provider.library.changes == []


def test_a_config_that_is_refused_changes_nothing(provider: Provider) -> None:
    problem = {"level": "ERROR", "type": "A", "message": "no such subnet"}
    refused = provider.refused("Invalid.", configuration_validation_errors=[problem])
    provider.library.fail("check_update", refused)
    assert provider.update().fails() == "Invalid. | ERROR A: no such subnet"
    assert provider.library.changes == []


def test_a_rename_proposes_a_second_cluster(provider: Provider) -> None:
    said = provider.refuses(lambda: provider.ask(provider.event("Update", ClusterName="other")))
    assert "cannot be renamed (training to other). Nothing was changed." in said
    assert "-c cluster_name=other" in said
    assert provider.library.asked == []


def test_on_event_asks_for_the_fleet_alone(provider: Provider) -> None:
    assert provider.update().event["FleetBefore"] == "RUNNING"
    assert provider.library.asked == ["fleet_status"]
    for error in (provider.throttled(), provider.refused("there is no item")):
        provider.library.fail("fleet_status", error)
        assert provider.update().event["FleetBefore"] is None


def test_draining_is_a_strategy_of_updates_alone(provider: Provider) -> None:
    drained = provider.update(on_busy="drain")
    drained.poll()
    assert provider.library.config["Scheduling"]["SlurmSettings"] == {"QueueUpdateStrategy": "DRAIN"}
    provider.library.is_gone()
    provider.create(request="Create-2", OnBusy="drain").poll()
    assert provider.library.config["Scheduling"]["SlurmSettings"] == {}


def test_other_updates_ask_for_no_strategy(provider: Provider) -> None:
    provider.update(on_busy="stop").poll()
    assert provider.library.config["Scheduling"]["SlurmSettings"] == {}


def test_busy_nodes_are_kept_by_default(provider: Provider) -> None:
    event = provider.event("Update", ClusterConfiguration=json.dumps(config("SPOT")))
    del event["ResourceProperties"]["OnBusy"]
    provider.library.wants, provider.library.running = [refused_change(STOP)], 1
    provider.aws.unreachable.add("ssm.send_command")
    assert "1 compute nodes of training run" in provider.ask(event).fails()


def test_a_cluster_without_head_node_is_refused(provider: Provider) -> None:
    provider.library.fail("check_update", provider.refused("Unable to retrieve head node information."))
    said = provider.update().fails()
    assert said.startswith(f"The head node of {NAME} was terminated")
    assert f"npx cdk destroy TrainingClusterStack -c cluster_name={NAME} and then the deploy again" in said
