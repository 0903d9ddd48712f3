"""Overrides in the rendered config: what is merged, added, replaced and removed."""

from typing import Any

import pytest

from tests.unit.training_cluster.overrides.conftest import Write
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import placeholders
from training_cluster.overrides.merge import merge, scripts_of
from training_cluster.pcluster.check import check_cluster_config, config_before_deploy, override_changes
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def _rendered(**flags: str) -> dict[str, Any]:
    ids = placeholders(image_id=None, bootstrap_budget_s=600)
    return render_cluster_config(settings=read_settings(flags), ids=ids)


def test_mappings_are_merged_deep_and_null_removes() -> None:
    ours = {"HeadNode": {"Imds": {"Secured": True}, "InstanceType": "c5.xlarge"}, "Monitoring": {"Logs": 1}}
    theirs = {"HeadNode": {"Imds": {"More": 1}}, "Monitoring": None, "New": {"A": {"B": None, "C": 1}}}
    assert merge(ours, theirs) == {
        "HeadNode": {"Imds": {"Secured": True, "More": 1}, "InstanceType": "c5.xlarge"},
        "New": {"A": {"C": 1}},
    }
    assert ours["Monitoring"] == {"Logs": 1}, "the rendered config is not changed"


def test_named_items_are_merged_by_name() -> None:
    ours = {"SharedStorage": [{"Name": "a", "X": {"Y": 1}}, {"Name": "b"}], "L": [1, 2]}
    theirs = {"SharedStorage": [{"Name": "a", "X": {"Z": 2}}, {"Name": "c"}], "L": [3]}
    assert merge(ours, theirs) == {
        "SharedStorage": [{"Name": "a", "X": {"Y": 1, "Z": 2}}, {"Name": "b"}, {"Name": "c"}],
        "L": [3],
    }


def test_buckets_are_added_even_the_same_one_twice() -> None:
    ours = {"Iam": {"S3Access": [{"BucketName": "b", "KeyName": "bootstrap/*"}]}}
    theirs = {"Iam": {"S3Access": [{"BucketName": "b", "KeyName": "more/*"}]}}
    assert merge(ours, theirs)["Iam"]["S3Access"] == [
        {"BucketName": "b", "KeyName": "bootstrap/*"},
        {"BucketName": "b", "KeyName": "more/*"},
    ]


def test_a_slurm_setting_replaces_ours_in_any_case() -> None:
    ours = {"S": {"CustomSlurmSettings": [{"JobRequeue": 1, "KillWait": 30}]}}
    for value, left in ((600, [{"JobRequeue": 1}, {"killwait": 600}]), (None, [{"JobRequeue": 1}])):
        theirs = {"S": {"CustomSlurmSettings": [{"killwait": value}]}}
        assert merge(ours, theirs)["S"]["CustomSlurmSettings"] == left


def test_prolog_flags_are_added_to_ours() -> None:
    ours = {"S": {"CustomSlurmSettings": [{"KillWait": 30, "PrologFlags": "Alloc,DeferBatch"}]}}
    theirs = {"S": {"CustomSlurmSettings": [{"prologflags": "alloc, X11"}]}}
    merged = merge(ours, theirs)["S"]["CustomSlurmSettings"]
    assert merged == [{"KillWait": 30}, {"prologflags": "alloc,DeferBatch,X11"}]
    for contrary in ("NoHold", None):
        with pytest.raises(ConfigurationError, match="remove it; the app sets Alloc,DeferBatch"):
            merge(ours, {"S": {"CustomSlurmSettings": [{"PrologFlags": contrary}]}})


def test_scripts_of_users_run_after_ours(write: Write) -> None:
    script = "{Script: 's3://other/x.sh', Args: [a]}"
    name = write(
        f"HeadNode: {{CustomActions: {{OnNodeConfigured: {script}, OnNodeUpdated: {script}}}}}\n"
        f"Scheduling: {{SlurmQueues: [{{Name: gpu, CustomActions: {{OnNodeConfigured: "
        f"{{Sequence: [{script}, {script}]}}}}}}]}}\n"
        f"LoginNodes: {{Pools: [{{Name: login, CustomActions: {{OnNodeConfigured: {script}}}}}]}}\n"
    )
    plain, merged = _rendered(login_nodes="1"), _rendered(login_nodes="1", overrides=name)
    theirs = {"Script": "s3://other/x.sh", "Args": ["a"]}

    def configured(config: dict[str, Any], *path: str | int, action: str = "OnNodeConfigured") -> list[Any]:
        node: Any = config
        for part in path:
            node = node[part]
        return scripts_of(node["CustomActions"][action])

    for count, path in (
        (1, ("HeadNode",)),
        (2, ("Scheduling", "SlurmQueues", 0)),
        (1, ("LoginNodes", "Pools", 0)),
    ):
        assert configured(merged, *path) == configured(plain, *path) + [theirs] * count
    updated = configured(merged, "HeadNode", action="OnNodeUpdated")
    assert updated == [*configured(plain, "HeadNode", action="OnNodeUpdated"), theirs]


def test_the_changes_are_listed_key_by_key(write: Write) -> None:
    settings = read_settings(
        {
            "overrides": write(
                "Monitoring: {DetailedMonitoring: true}\nSharedStorage:\n  - {Name: apps, "
                "StorageType: Ebs, MountDir: /apps, EbsSettings: {VolumeId: vol-0123456789abcdef0}}\n"
            )
        }
    )
    check_cluster_config(config_before_deploy(settings), settings)
    assert override_changes(settings) == [
        "SharedStorage[apps]: - -> apps",
        "Monitoring.DetailedMonitoring: - -> true",
    ]
