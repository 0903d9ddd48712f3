"""Replaces keys that ParallelCluster no longer has, by what it has instead."""

import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

from training_cluster.flags.cluster import PCLUSTER_VERSION

Config = dict[str, Any]
_SYSTEMS = {"alinux2": "alinux2023", "ubuntu1804": "ubuntu2204", "ubuntu2004": "ubuntu2204"}
"""Systems that this version does not have, and the next one of the same distribution that it has."""
_NO_FILE_CACHE = "NONE"


def renewed(config: Config, replaced: list[str]) -> Config:
    """Remove keys that this version no longer supports, and append a note for each to `replaced`."""
    new = copy.deepcopy(config)
    for step in _STEPS:
        replaced += step(new)
    return new


def without_nothing(value: Any) -> Any:
    """Return a value without keys that have none: `Args:` with nothing after it."""
    if isinstance(value, dict):
        return {key: without_nothing(inner) for key, inner in value.items() if inner is not None}
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


def _system(config: Config) -> Iterator[str]:
    image = config.get("Image", {})
    if successor := _SYSTEMS.get(str(image.get("Os"))):
        old = image["Os"]
        yield f"Image.Os: {old} -> {successor}: ParallelCluster {PCLUSTER_VERSION} has no {old}"
        image["Os"] = successor


def _keys_of_login_nodes(config: Config) -> Iterator[str]:
    for pool in config.get("LoginNodes", {}).get("Pools", []):
        if pool.get("Ssh", {}).pop("KeyName", None):
            yield (
                f"LoginNodes.Pools[{pool.get('Name')}].Ssh.KeyName: ParallelCluster gives login nodes the "
                "head node's key"
            )
            if not pool["Ssh"]:
                del pool["Ssh"]


def _empty_pools(config: Config) -> Iterator[str]:
    login = config.get("LoginNodes", {})
    empty = [each for each in login.get("Pools", []) if each.get("Count") == 0]
    for each in empty:
        yield f"LoginNodes.Pools[{each.get('Name')}]: a pool of 0 nodes is left out"
    if empty:
        login["Pools"] = [each for each in login["Pools"] if each not in empty]
        if not login["Pools"]:
            del config["LoginNodes"]


def _caches(config: Config) -> Iterator[str]:
    for item in config.get("SharedStorage", []):
        settings = item.get("FsxLustreSettings", {})
        if settings.get("DriveCacheType") == _NO_FILE_CACHE:
            del settings["DriveCacheType"]
            yield f"SharedStorage[{item.get('Name')}].FsxLustreSettings.DriveCacheType: NONE is the default"


def _names(config: Config) -> Iterator[str]:
    for queue in config["Scheduling"].get("SlurmQueues", []):
        for each in (queue, *queue.get("ComputeResources", [])):
            name = str(each.get("Name"))
            each["Name"] = re.sub(r"[^a-z0-9-]", "-", name.lower())
            if each["Name"] != name:
                yield f"{name}: named {each['Name']}: names have lower-case letters, digits and hyphens"


_STEPS: tuple[Callable[[Config], Iterator[str]], ...] = (
    _system,
    _keys_of_login_nodes,
    _empty_pools,
    _caches,
    _names,
)
