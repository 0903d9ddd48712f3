"""Storage that ParallelCluster makes: it outlives the cluster unless the file says otherwise."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.training_cluster.overrides.conftest import Write
from training_cluster.overrides.storage import managed_storage, with_retention
from training_cluster.pcluster.check import check_cluster_config, config_before_deploy
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

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


def test_new_storage_is_kept_unless_the_file_says() -> None:
    policies = {each.name: each.deletion_policy for each in managed_storage({"SharedStorage": STORAGE})}
    assert policies == {"plain": "Retain", "kept": "Snapshot", "more": "Delete", "lustre": "Retain"}
    before: dict[str, Any] = {"SharedStorage": STORAGE, "Region": "x"}
    after = {each["Name"]: each for each in with_retention(before)["SharedStorage"]}
    assert after["plain"]["EbsSettings"] == {"DeletionPolicy": "Retain"}
    assert after["lustre"]["FsxLustreSettings"] == {"BackupId": "b", "DeletionPolicy": "Retain"}
    assert [after[each["Name"]] for each in STORAGE if each["Name"] in ("kept", "mine", "more", "zfs")] == [
        each for each in STORAGE if each["Name"] in ("kept", "mine", "more", "zfs")
    ]


def test_lustre_is_made_in_one_subnet_only(write: Write, tmp_path: Path) -> None:
    queues = tmp_path / "queues.yaml"
    queues.write_text("far: {instance_types: c5.large, subnet_ids: subnet-0123456789abcdef0}\n")
    overrides = write(
        "SharedStorage: [{Name: more, MountDir: /more, StorageType: FsxLustre, "
        "FsxLustreSettings: {StorageCapacity: 1200}}]"
    )
    settings = read_settings({"overrides": overrides})
    check_cluster_config(config_before_deploy(settings), settings)
    settings = read_settings({"overrides": overrides, "queues": str(queues)})
    with pytest.raises(ConfigurationError, match="only where all queues have one subnet"):
        check_cluster_config(config_before_deploy(settings), settings)
