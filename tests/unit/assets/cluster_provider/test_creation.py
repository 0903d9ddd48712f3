"""The config with its mark, and what a failure says; states.txt has the steps."""

import json

from tests.unit.assets.cluster_provider.fakes.aws import BUCKET
from tests.unit.assets.cluster_provider.fakes.library import OWNER_TAG, STACK, config
from tests.unit.assets.cluster_provider.fakes.provider import Provider

BOOT_FAILED = {"failureCode": "HeadNodeBootstrapFailure", "failureReason": "20-mount-storage.sh ended as 1"}


def test_the_checked_config_is_created_with_the_mark(provider: Provider) -> None:
    own, mark = {"Key": "team", "Value": "language"}, {"Key": OWNER_TAG, "Value": STACK}
    provider.create(ClusterConfiguration=json.dumps(config() | {"Tags": [own]})).poll()
    assert provider.library.config == provider.library.checked == config() | {"Tags": [own, mark]}
    provider.library.becomes("CREATE_COMPLETE")
    provider.update().poll()
    assert provider.library.config == config("SPOT") | {"Tags": [mark]}


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
