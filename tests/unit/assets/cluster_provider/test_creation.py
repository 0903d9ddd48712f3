"""Create: the config with its mark, and what a failure says; states.txt has the steps."""

import json

from tests.unit.assets.cluster_provider.fakes.aws import BUCKET
from tests.unit.assets.cluster_provider.fakes.library import (
    HEAD_NODE,
    OWNER_TAG,
    STACK,
)
from tests.unit.assets.cluster_provider.fakes.provider import Provider

BOOT_FAILED = {"failureCode": "HeadNodeBootstrapFailure", "failureReason": "20-mount-storage.sh ended as 1"}


def test_a_refused_config_makes_nothing(provider: Provider) -> None:
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


def test_the_checked_config_is_created_with_the_mark(provider: Provider) -> None:
    provider.create().poll()
    assert provider.library.config == provider.library.checked
    assert provider.library.config["Tags"] == [{"Key": OWNER_TAG, "Value": STACK}]
    assert provider.library.cluster.tags == {OWNER_TAG: STACK}


def test_the_configs_tags_stay_with_the_mark(provider: Provider) -> None:
    own = {"Key": "team", "Value": "language"}
    provider.create(ClusterConfiguration=json.dumps({"Tags": [own]})).poll()
    assert provider.library.cluster.tags == {"team": "language", OWNER_TAG: STACK}


def test_the_answer_names_the_head_node(provider: Provider) -> None:
    asked = provider.create()
    provider.library.exists("CREATE_COMPLETE")
    assert asked.answer() == {"IsComplete": True, "Data": {"HeadNodeInstanceId": HEAD_NODE}}
    provider.library.exists("CREATE_COMPLETE", head_node_instance_id=None)
    assert asked.answer()["Data"] == {"HeadNodeInstanceId": "none"}


def test_two_polls_at_once_make_one_cluster(provider: Provider) -> None:
    asked, twice = provider.create(), provider.create()
    provider.library.meanwhile = twice.poll
    asked.poll()
    assert provider.library.cluster.status == "CREATE_IN_PROGRESS"
    assert "delete" not in provider.library.changes


def test_a_failure_names_reasons_and_logs(provider: Provider) -> None:
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


def test_a_long_failure_fits_into_the_answer(provider: Provider) -> None:
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


def test_a_failure_without_details_is_reported(provider: Provider) -> None:
    asked = provider.create()
    asked.poll()
    provider.library.becomes("CREATE_FAILED")
    provider.aws.unreachable |= {"s3"}
    for operation in ("stack_events", "log_group"):
        provider.library.fail(operation, provider.throttled())
    assert asked.fails() == (
        "Cluster training is CREATE_FAILED | More: pcluster get-cluster-stack-events --cluster-name training"
    )
