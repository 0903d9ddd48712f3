"""The logs of a failure are in the bucket before any deletion, and missing ones are named."""

import json
from typing import Any

import pytest

from tests.unit.assets.cluster_provider.fakes.aws import BUCKET
from tests.unit.assets.cluster_provider.fakes.provider import Provider

FOLDER = f"{BUCKET}/logs/training/2026-01-01T00-00-01+00-00-CREATE_FAILED"
URL = f"s3://{FOLDER}/"
HEAD_NODE_LOGS = {
    "ip-10-0-0-1.i-0123.chef-client": "recipe\nerror",
    "ip-10-0-0-1.i-0123.slurmctld": "no node answers",
    "ip-10-0-0-1.i-0123.dcv-server": "of no use here",
}
FAILURE = {"failureCode": "Boot", "failureReason": "script"}


@pytest.fixture(autouse=True)
def _cluster_has_failed(provider: Provider) -> None:
    provider.library.exists("CREATE_FAILED", failures=(FAILURE,))
    provider.library.events = [{"logicalResourceId": "HeadNode", "resourceStatus": "CREATE_FAILED"}]
    provider.library.streams = HEAD_NODE_LOGS


def _save(provider: Provider) -> str | None:
    url: str | None = provider.failure_logs.save("training", provider.library.cluster)
    return url


def test_each_failure_is_saved_once(provider: Provider) -> None:
    assert _save(provider) == URL
    assert sorted(provider.aws.objects) == [
        f"{FOLDER}/{name}"
        for name in (
            "chef-client.log",
            "console-output.txt",
            "failures.json",
            "slurmctld.log",
            "stack-events.json",
        )
    ]
    assert json.loads(provider.saved["failures.json"]) == {"status": "CREATE_FAILED", "failures": [FAILURE]}
    assert json.loads(provider.saved["stack-events.json"]) == provider.library.events
    assert provider.saved["console-output.txt"] == "Linux boots"
    assert provider.saved["chef-client.log"] == "recipe\nerror"
    _save(provider)
    before = dict(provider.aws.objects)
    provider.aws.console = "another text"
    assert (_save(provider), provider.aws.objects) == (URL, before)
    _save(provider)
    provider.library.becomes("UPDATE_FAILED", changed="2026-02-02T00:00:00+00:00")
    url = _save(provider)
    assert url is not None
    assert url.endswith("/logs/training/2026-02-02T00-00-00+00-00-UPDATE_ROLLBACK_COMPLETE/")
    assert len(provider.aws.objects) == 10


def test_the_end_of_a_long_log_is_saved(provider: Provider) -> None:
    provider.library.streams = {"ip.i.cfn-init": "\n".join(str(line) for line in range(2000))}
    _save(provider)
    kept = provider.saved["cfn-init.log"].splitlines()
    assert (len(kept), kept[-1]) == (500, "1999")


@pytest.mark.parametrize(
    ("operation", "missing"), [("stack_events", "stack-events.json"), ("log_tail", "chef-client.log")]
)
@pytest.mark.parametrize("kind", ["throttled", "refused"])
def test_missing_logs_are_named_and_others_saved(
    provider: Provider, kind: str, operation: str, missing: str
) -> None:
    error = getattr(provider, kind)()
    provider.library.fail(operation, error)
    assert _save(provider) == URL
    assert missing not in provider.saved
    assert (provider.saved["missing.txt"], len(provider.saved)) == (f"{missing}: {error}", 5)


def test_unlisted_logs_of_the_head_node_are_named(provider: Provider) -> None:
    provider.library.fail("head_node_log_streams", provider.refused("there is no log group"))
    assert (_save(provider), provider.saved["missing.txt"]) == (URL, "head-node-logs: there is no log group")
    assert sorted(provider.saved) == [
        "console-output.txt",
        "failures.json",
        "missing.txt",
        "stack-events.json",
    ]


def test_each_missing_file_has_its_line(provider: Provider) -> None:
    provider.aws.denied["ec2.get_console_output"] = "UnauthorizedOperation"
    provider.library.fail("log_tail", provider.throttled(), times=2)
    _save(provider)
    named = [line.partition(":")[0] for line in provider.saved["missing.txt"].splitlines()]
    assert named == ["console-output.txt", "chef-client.log", "slurmctld.log"]
    assert list(provider.saved)[-2:] == ["missing.txt", "failures.json"], "the mark of completeness is last"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"head_node_instance_id": None}, "The cluster had no head node."),
        ({}, "EC2 had no console output yet."),
    ],
)
def test_a_console_without_a_word_says_why(provider: Provider, changes: dict[str, Any], text: str) -> None:
    provider.aws.console = None
    provider.library.becomes("CREATE_FAILED", **changes)
    _save(provider)
    assert provider.saved["console-output.txt"] == text


@pytest.mark.parametrize("call", ["s3.list_objects_v2", "s3.put_object"])
def test_a_closed_bucket_stops_nothing(provider: Provider, call: str) -> None:
    provider.aws.denied[call] = "AccessDenied"
    assert _save(provider) is None
    said = str(provider.failure_logs.failure("training", provider.library.cluster))
    assert "Boot: script" in said
    assert "Saved" not in said


def test_what_was_saved_in_part_is_completed(provider: Provider) -> None:
    provider.aws.objects[f"{FOLDER}/stack-events.json"] = "cut off"
    assert _save(provider) == URL
    assert json.loads(provider.saved["stack-events.json"]) == provider.library.events
    assert "console-output.txt" in provider.saved


def _event(name: str, status: str, reason: str = "") -> dict[str, Any]:
    return {"logicalResourceId": name, "resourceStatus": status, "resourceStatusReason": reason} | {
        "physicalResourceId": name,
        "stackId": "training",
    }


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE", "DELETE"])
@pytest.mark.parametrize("rolls_back", [False, True])
def test_last_operation_alone_explains_failure(provider: Provider, operation: str, rolls_back: bool) -> None:
    rollback = [_event("training", f"UPDATE_ROLLBACK_{state}") for state in ("COMPLETE", "IN_PROGRESS")]
    provider.library.events = [
        *(rollback if rolls_back else []),
        _event("training", f"{operation}_FAILED", "it failed"),
        _event("Queue", f"{operation}_FAILED", "quota"),
        _event("Queue", f"{operation}_IN_PROGRESS"),
        _event("training", f"{operation}_IN_PROGRESS"),
        _event("Former", "UPDATE_FAILED", "of last week"),
        _event("training", "UPDATE_IN_PROGRESS"),
    ]
    said = str(provider.failure_logs.failure("training", provider.library.cluster))
    assert said.split(" | ") == [
        *("Cluster training is CREATE_FAILED", "Boot: script", f"Saved: {URL}"),
        "Log group: /aws/parallelcluster/training-1",
        "More: pcluster get-cluster-stack-events --cluster-name training",
        *("Queue: quota", "training: it failed"),
    ]


def test_a_console_of_the_boot_alone_is_taken(provider: Provider) -> None:
    provider.aws.is_nitro = False
    _save(provider)
    assert provider.saved["console-output.txt"] == "Linux boots"
    assert "missing.txt" not in provider.saved
