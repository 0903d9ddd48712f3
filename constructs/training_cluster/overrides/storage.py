"""Shared storage that ParallelCluster makes with the cluster, by a file of overrides."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_IDS = {"Ebs": "VolumeId", "Efs": "FileSystemId", "FsxLustre": "FileSystemId"}
"""Types that ParallelCluster makes where the key with an id is missing."""
RETAIN = "Retain"


@dataclass(frozen=True, kw_only=True)
class ManagedStorage:
    """Storage that exists because the cluster does."""

    name: str
    kind: str
    """Type of storage: Ebs, Efs, FsxLustre."""
    mount_dir: str
    deletion_policy: str
    """Retain; Delete or Snapshot where the file says so."""
    settings: Mapping[str, Any]


def queue_subnets(config: Mapping[str, Any]) -> set[str]:
    """Return the subnets of all queues of a cluster config."""
    return {
        each for queue in config["Scheduling"]["SlurmQueues"] for each in queue["Networking"]["SubnetIds"]
    }


def managed_storage(config: Mapping[str, Any]) -> Iterator[ManagedStorage]:
    """Yield the storage of a cluster config, or of overrides, that ParallelCluster makes."""
    storage = config.get("SharedStorage")
    for item in storage if isinstance(storage, list) else []:
        kind = str(item.get("StorageType")) if isinstance(item, Mapping) else ""
        if kind in _IDS:
            settings = item.get(f"{kind}Settings") or {}
            if isinstance(settings, Mapping) and _IDS[kind] not in settings:
                yield ManagedStorage(
                    name=str(item.get("Name")),
                    kind=kind,
                    mount_dir=str(item.get("MountDir")),
                    deletion_policy=str(settings.get("DeletionPolicy", RETAIN)),
                    settings=settings,
                )


def with_retention(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a config whose managed storage outlives the cluster, unless its file says otherwise.

    ParallelCluster's default is to delete the storage with the cluster, or with its item in the config.
    """
    managed = {each.name: each for each in managed_storage(config)}
    storage = [
        {**item, f"{each.kind}Settings": {**each.settings, "DeletionPolicy": each.deletion_policy}}
        if isinstance(item, Mapping) and (each := managed.get(str(item.get("Name"))))
        else item
        for item in config.get("SharedStorage", [])
    ]
    return {**config, "SharedStorage": storage} if managed else dict(config)
