"""Overrides in the rendered config: what is merged, added, replaced, removed, refused, and kept."""

from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.unit.training_cluster.conftest import Write
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import PLACEHOLDERS
from training_cluster.flags.settings import Settings
from training_cluster.overrides.merge import merge, scripts_of
from training_cluster.overrides.nodes import own_roles
from training_cluster.overrides.reserved import reserved_keys
from training_cluster.overrides.storage import managed_storage, with_retention
from training_cluster.pcluster.check import checked_config, config_before_deploy, override_changes
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def _rendered(**flags: str) -> dict[str, Any]:
    ids = replace(PLACEHOLDERS, bootstrap_budget_s=600)
    return render_cluster_config(settings=read_settings(flags), ids=ids)


def _checked(flags: dict[str, str]) -> tuple[Settings, dict[str, Any]]:
    settings = read_settings(flags)
    return settings, checked_config(settings)


def _slurm(*settings: dict[str, Any]) -> dict[str, Any]:
    return {"Scheduling": {"SlurmSettings": {"CustomSlurmSettings": list(settings)}}}


OURS = {
    **_slurm(
        {"JobRequeue": 1, "PrologFlags": "Alloc,DeferBatch", "AccountingStorageTRES": "gres/gpu"},
        {"SchedulerParameters": "nohold,bf_interval=10"},
    ),
    "Tags": [{"Key": "training-cluster:cluster", "Value": "a"}],
}
BOOTSTRAP = {"BucketName": "b", "KeyName": "bootstrap/*"}
# Ours, the file's, and what becomes of both.
MERGED: tuple[tuple[dict[str, Any], ...], ...] = (
    # Mappings deep; null removes.
    (
        {"HeadNode": {"Imds": {"Secured": True}, "InstanceType": "c5.xlarge"}, "Monitoring": {"Logs": 1}},
        {"HeadNode": {"Imds": {"More": 1}}, "Monitoring": None, "New": {"A": {"B": None, "C": 1}}},
        {
            "HeadNode": {"Imds": {"Secured": True, "More": 1}, "InstanceType": "c5.xlarge"},
            "New": {"A": {"C": 1}},
        },
    ),
    # Items by name.
    (
        {"SharedStorage": [{"Name": "a", "X": {"Y": 1}}, {"Name": "b"}], "L": [1, 2]},
        {"SharedStorage": [{"Name": "a", "X": {"Z": 2}}, {"Name": "c"}], "L": [3]},
        {"SharedStorage": [{"Name": "a", "X": {"Y": 1, "Z": 2}}, {"Name": "b"}, {"Name": "c"}], "L": [3]},
    ),
    # Rights to buckets are added, even to the same one.
    (
        {"Iam": {"S3Access": [BOOTSTRAP]}},
        {"Iam": {"S3Access": [BOOTSTRAP | {"KeyName": "more/*"}]}},
        {"Iam": {"S3Access": [BOOTSTRAP, BOOTSTRAP | {"KeyName": "more/*"}]}},
    ),
    # Settings of slurm.conf, in any case, and tags: ours stay, and the words of lists are joined.
    (
        OURS,
        _slurm(
            {"jobrequeue": 1, "SlurmdTimeout": 9},
            {"prologflags": "alloc, X11", "AccountingStorageTRES": "license/x,node"},
            {"NodeSet": 1, "Nodes": 2, "SchedulerParameters": "bf_continue,bf_interval=10,no_env_cache"},
        )
        | {"Tags": [*OURS["Tags"], {"Key": "team", "Value": "nlp"}]},
        _slurm(
            {
                "JobRequeue": 1,
                "PrologFlags": "Alloc,DeferBatch,X11",
                "AccountingStorageTRES": "gres/gpu,license/x,node",
            },
            {"SchedulerParameters": "nohold,bf_interval=10,bf_continue,no_env_cache"},
            {"SlurmdTimeout": 9},
            {"NodeSet": 1, "Nodes": 2},
        )
        | {"Tags": [*OURS["Tags"], {"Key": "team", "Value": "nlp"}]},
    ),
)


def test_each_kind_of_value_is_merged() -> None:
    for ours, theirs, merged in MERGED:
        before = deepcopy(ours)
        assert merge(ours, theirs) == merged
        assert ours == before, "the rendered config is not changed"
    for text, said in CASES.items():
        (found,) = reserved_keys(yaml.safe_load(text))
        assert said in found, text
    assert [text for text in FREE if list(reserved_keys(yaml.safe_load(text)))] == []


@pytest.mark.parametrize(
    "given",
    [
        *("JobRequeue: 0", "jobrequeue: null", "PrologFlags: NoHold", "PrologFlags: null"),
        "SchedulerParameters: bf_interval=9, no_env_cache",
    ],
)
def test_a_setting_of_the_app_is_kept(given: str) -> None:
    name, value = given.partition(",")[0].split(": ")
    with pytest.raises(ConfigurationError, match=f" {name}: {value}: the app sets .*; remove it"):
        merge(OURS, _slurm(yaml.safe_load(given)))


@pytest.mark.parametrize("given", ["exclusiveuser: 'NO'", "TRESBillingWeights: Node=0", "ExclusiveUser: "])
def test_settings_of_queues_are_kept(given: str) -> None:
    ours = {"CustomSlurmSettings": {"TRESBillingWeights": "Node=8", "ExclusiveUser": "YES"}}
    with pytest.raises(ConfigurationError, match=r"the app sets .*; remove it"):
        merge(ours, {"CustomSlurmSettings": yaml.safe_load(f"{{{given}}}")})
    more = {"CustomSlurmSettings": {"MaxTime": 9, "exclusiveuser": "YES"}}
    assert merge(ours, more)["CustomSlurmSettings"] == {**ours["CustomSlurmSettings"], "MaxTime": 9}


def test_scripts_of_users_run_after_ours(write: Write) -> None:
    script = "{Script: 's3://other/x.sh', Args: [a]}"
    name = write(
        f"HeadNode: {{CustomActions: {{OnNodeConfigured: {script}, OnNodeUpdated: {script}}}}}\n"
        f"Scheduling: {{SlurmQueues: [{{Name: gpu, CustomActions: {{OnNodeConfigured: "
        f"{{Sequence: [{script}, {script}]}}}}}}]}}\n"
        f"LoginNodes: {{Pools: [{{Name: login, CustomActions: {{OnNodeConfigured: {script}}}}}]}}\n"
    )

    def scripts(**flags: str) -> list[list[Any]]:
        config = _rendered(login_nodes="1", **flags)
        head, queue, pool = (
            each["CustomActions"]
            for each in (
                config["HeadNode"],
                config["Scheduling"]["SlurmQueues"][0],
                config["LoginNodes"]["Pools"][0],
            )
        )
        found = [each["OnNodeConfigured"] for each in (head, pool, queue)]
        return [scripts_of(each) for each in (head["OnNodeUpdated"], *found)]

    theirs = {"Script": "s3://other/x.sh", "Args": ["a"]}
    added = ([theirs], [theirs], [theirs], [theirs, theirs])
    assert scripts(overrides=name) == [ours + more for ours, more in zip(scripts(), added, strict=True)]


def test_the_changes_are_listed_key_by_key(write: Write) -> None:
    name = write(
        "Monitoring: {Logs: {CloudWatch: {RetentionInDays: 90}}}\nSharedStorage:\n  - {Name: apps, "
        "StorageType: Ebs, MountDir: /apps, EbsSettings: {VolumeId: vol-0123456789abcdef0}}\n"
    )
    settings, _ = _checked({"overrides": name})
    assert override_changes(settings) == [
        "SharedStorage[apps]: - -> apps",
        "Monitoring.Logs.CloudWatch.RetentionInDays: 30 -> 90",
    ]


HEAD, NODES = (f"arn:aws:iam::123456789012:role/{name}" for name in ("head", "nodes"))


def test_roles_stand_alone_and_groups_add_up(write: Write) -> None:
    name = write(
        f"HeadNode: {{Iam: {{InstanceRole: '{HEAD}'}}}}\n"
        f"Scheduling: {{SlurmQueues: [{{Name: gpu, Iam: {{InstanceRole: '{NODES}'}}}}]}}\n"
    )
    _, config = _checked({"overrides": name, "login_nodes": "1"})
    assert config["HeadNode"]["Iam"] == {"InstanceRole": HEAD}
    assert config["Scheduling"]["SlurmQueues"][0]["Iam"] == {"InstanceRole": NODES}
    assert config["LoginNodes"]["Pools"][0]["Iam"]["AdditionalIamPolicies"]
    assert own_roles(config) == {HEAD: {"Head"}, NODES: {"Compute"}}
    assert own_roles(config_before_deploy(read_settings({}))) == {}
    name = write(
        "HeadNode: {Networking: {AdditionalSecurityGroups: [sg-0123456789abcdef0]}}\n"
        "Scheduling: {SlurmQueues: [{Name: gpu, Networking: "
        "{AdditionalSecurityGroups: [sg-0123456789abcdef1]}}]}\n"
    )
    config, plain = (
        config_before_deploy(read_settings(flags)) for flags in ({"overrides": name}, dict[str, str]())
    )
    ours = plain["HeadNode"]["Networking"]["SecurityGroups"]
    assert config["HeadNode"]["Networking"] == {
        **plain["HeadNode"]["Networking"],
        "SecurityGroups": [*ours, "sg-0123456789abcdef0"],
    }
    queue = config["Scheduling"]["SlurmQueues"][0]["Networking"]
    assert queue["SecurityGroups"] == [*ours, "sg-0123456789abcdef1"]
    assert "AdditionalSecurityGroups" not in queue


STORAGE: list[dict[str, Any]] = [
    {"Name": "plain", "StorageType": "Ebs", "MountDir": "/plain"},
    {
        "Name": "kept",
        "StorageType": "Ebs",
        "MountDir": "/kept",
        "EbsSettings": {"Size": 9, "DeletionPolicy": "Snapshot"},
    },
    {"Name": "mine", "StorageType": "Ebs", "MountDir": "/mine", "EbsSettings": {"VolumeId": "vol-1"}},
    {"Name": "more", "StorageType": "Efs", "MountDir": "/more", "EfsSettings": {"DeletionPolicy": "Delete"}},
    {"Name": "zfs", "StorageType": "FsxOpenZfs", "MountDir": "/zfs", "FsxOpenZfsSettings": {"VolumeId": "f"}},
    {"Name": "lustre", "StorageType": "FsxLustre", "MountDir": "/l", "FsxLustreSettings": {"BackupId": "b"}},
]


def test_new_storage_is_kept_unless_the_file_says(write: Write, tmp_path: Path) -> None:
    policies = {each.name: each.deletion_policy for each in managed_storage({"SharedStorage": STORAGE})}
    assert policies == {"plain": "Retain", "kept": "Snapshot", "more": "Delete", "lustre": "Retain"}
    before: dict[str, Any] = {"SharedStorage": STORAGE, "Region": "x"}
    after = {each["Name"]: each for each in with_retention(before)["SharedStorage"]}
    assert after["plain"]["EbsSettings"] == {"DeletionPolicy": "Retain"}
    assert after["lustre"]["FsxLustreSettings"] == {"BackupId": "b", "DeletionPolicy": "Retain"}
    assert [after[each["Name"]] for each in STORAGE if each["Name"] in ("kept", "mine", "more", "zfs")] == [
        each for each in STORAGE if each["Name"] in ("kept", "mine", "more", "zfs")
    ]
    queues = tmp_path / "queues.yaml"
    queues.write_text("far: {instance_types: c5.large, subnet_ids: subnet-0123456789abcdef0}\n")
    overrides = write(
        "SharedStorage: [{Name: more, MountDir: /more, StorageType: FsxLustre, "
        "FsxLustreSettings: {StorageCapacity: 1200}}]"
    )
    assert _checked({"overrides": overrides})
    with pytest.raises(ConfigurationError, match="only where all queues have one subnet"):
        _checked({"overrides": overrides, "queues": str(queues)})


CASES = {
    "Image: {Os: alinux2023}": "a flag sets it: -c os=alinux2023",
    "Image: {Os: beos}": "a flag sets it: -c os, which takes ubuntu2204, ubuntu2404, alinux2023",
    "Tags: null": "items of a list are added to the app's",
    "Scheduling: {SlurmQueues: [{Name: gpu, CustomSlurmSettings: null}]}": "added to the app's",
    "Scheduling: {SlurmQueues: [{Name: a, ComputeResources: [{Name: b, CustomSlurmSettings: null}]}]}": (
        "added to the app's"
    ),
    "SharedStorage: []": "give its keys, or items with their Name",
    "SharedStorage: [{Name: efs, EfsSettings: {Encrypted: true}}]": "-c fsx_id, efs_id, home",
    "HeadNode: {Image: {CustomAmi: ami-0123456789abcdef7}}": "-c head_image=ami-0123456789abcdef7",
    "HeadNode: {Networking: {SecurityGroups: [sg-1]}}": "AdditionalSecurityGroups",
    "HeadNode: {CustomActions: {OnNodeConfigured: null}}": "yours run after them",
    "HeadNode: {Ssh: {AllowedIps: 10.0.0.0/8}}": "-c ssh_from=10.0.0.0/8",
    "HeadNode: {Ssh: {AllowedIps: 0.0.0.0/0}}": "-c ssh_from=0.0.0.0/0 -c ssh_from_anywhere=yes",
    "Monitoring: {DetailedMonitoring: true}": "-c detailed_monitoring=on",
    "Scheduling: {SlurmSettings: {ScaledownIdletime: -1}}": "-c idle_minutes=-1",
    "Scheduling: {SlurmSettings: {QueueUpdateStrategy: TERMINATE}}": "-c on_busy=stop",
    "Scheduling: {SlurmQueues: [{Name: gpu, Image: null}]}": "give its keys",
    "Scheduling: {SlurmQueues: [{Name: a, ComputeSettings: {LocalStorage: {RootVolume: {Size: 99}}}}]}": (
        "-c compute_root_gib=99; or `root_gib: 99` of the queue in the file of -c queues"
    ),
    "Scheduling: {SlurmQueues: [{Name: a, Networking: {PlacementGroup: {Id: x}}}]}": "-c placement_group=x;",
    "Scheduling: {SlurmQueues: [{Name: a, ComputeResources: [{Name: b, Efa: {Enabled: true}}]}]}": (
        "set it by `efa: true` of the queue in the file of -c queues"
    ),
}
FREE = (
    "LoginNodes: {Pools: [{Name: more, Count: 3, Networking: {SubnetIds: [subnet-1]}}]}",
    "LoginNodes: {Pools: [{Name: login, Networking: {SubnetIds: [subnet-1]}}]}",
    "Scheduling: {SlurmSettings: {Database: {DatabaseName: x}}}",
    "Scheduling: {SlurmQueues: [{Name: gpu, ComputeResources: [{Name: p4d, Efa: {GdrSupport: true}}]}]}",
    "SharedStorage: [{Name: efs, EfsSettings: {AccessPointId: fsap-1}}]",
    "HeadNode: {LocalStorage: {RootVolume: {Iops: 6000}}}",
    "HeadNode: {Iam: {S3Access: [{BucketName: other}], AdditionalIamPolicies: [{Policy: a}]}}",
    "Tags: [{Key: team, Value: nlp}]",
)


def test_cores_without_threads_reach_slurm(write: Write) -> None:
    def topology(family: str, text: str) -> Any:
        name = write(f"Scheduling: {{SlurmQueues: [{{Name: gpu, ComputeResources: [{text}]}}]}}\n")
        config = _rendered(family=family, overrides=name)
        return config["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0].get("CustomSlurmSettings")

    off = "DisableSimultaneousMultithreading: true"
    plain = {"Sockets": 2, "CoresPerSocket": 24, "ThreadsPerCore": 2}
    assert topology("p4d", "{Name: p4d, DynamicNodePriority: 9}") == plain
    assert topology("p4d", f"{{Name: p4d, {off}}}") == plain | {"ThreadsPerCore": 1}
    assert topology("p4d", f"{{Name: p4d, {off}, CustomSlurmSettings: {{Weight: 2}}}}")["ThreadsPerCore"] == 1
    assert topology("g5", f"{{Name: g5, {off}}}") is None, "ParallelCluster's own line counts right"
