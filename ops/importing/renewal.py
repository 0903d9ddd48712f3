"""Rewrites a config with keys of the same effect, and replaces keys that ParallelCluster no longer has."""

import re
from typing import Any

from ops.importing.translation import Translation
from training_cluster.catalog.ports import MYSQL_PORT
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.overrides.nodes import placed_nodes

Config = dict[str, Any]
LOGIN_POOL = "login"
"""Name of the pool of -c login_nodes."""
_SYSTEMS = {"alinux2": "alinux2023", "ubuntu1804": "ubuntu2204", "ubuntu2004": "ubuntu2204"}
"""Systems that this version does not have, and the next one of the same distribution that it has."""
_NO_FILE_CACHE = "NONE"
_RETENTION_DAYS = 180
"""Days for which ParallelCluster keeps logs by default (3.16.1, CW_LOGS_RETENTION_DAYS_DEFAULT)."""


def renew(config: Config, to: Translation) -> None:
    """Rewrite a config in place, with a note for each key that is not the same."""
    _system(config, to)
    _image_of_all(config, to)
    _pools(config, to)
    _caches(config, to)
    _database(config)
    _queues(config, to)
    logs = config.setdefault("Monitoring", {}).setdefault("Logs", {}).setdefault("CloudWatch", {})
    logs.setdefault("RetentionInDays", _RETENTION_DAYS)


def without_nothing(value: Any) -> Any:
    """Return a value without keys that have none: `Args:` with nothing after it."""
    if isinstance(value, dict):
        return {key: without_nothing(inner) for key, inner in value.items() if inner is not None}
    return [without_nothing(each) for each in value] if isinstance(value, list) else value


def _system(config: Config, to: Translation) -> None:
    image = config.get("Image", {})
    if successor := _SYSTEMS.get(str(image.get("Os"))):
        old, image["Os"] = image["Os"], successor
        words = f"{old} -> {successor}: ParallelCluster {PCLUSTER_VERSION} has no {old}"
        to.note("replaced", "Image.Os", words)


def _image_of_all(config: Config, to: Translation) -> None:
    """Give all nodes the image that they have in common: only an image of a queue can change later."""
    if ami := config.get("Image", {}).pop("CustomAmi", None):
        to.note("moved", "Image.CustomAmi", f"{ami}: at each node that has no other")
        for _path, node in placed_nodes(config):
            node.setdefault("Image", {}).setdefault("CustomAmi", ami)


def _pools(config: Config, to: Translation) -> None:
    login = config.get("LoginNodes", {})
    for pool in list(login.get("Pools", [])):
        path = f"LoginNodes.Pools[{pool.get('Name')}]"
        if pool.get("Count") == 0:
            to.note("moved", path, "a pool of 0 nodes is left out")
            login["Pools"].remove(pool)
        if pool.get("Ssh", {}).pop("KeyName", None):
            words = "ParallelCluster gives login nodes the head node's key"
            to.note("moved", f"{path}.Ssh.KeyName", words)
    for pool in login.get("Pools", [])[:1]:
        if pool.get("Name") != LOGIN_POOL:
            path = f"LoginNodes.Pools[{pool.get('Name')}]"
            to.note("moved", f"{path}.Name", f"the first pool is named {LOGIN_POOL}")
        pool["Name"] = LOGIN_POOL
    if "LoginNodes" in config and not login.get("Pools"):
        del config["LoginNodes"]


def _caches(config: Config, to: Translation) -> None:
    for item in config.get("SharedStorage", []):
        settings = item.get("FsxLustreSettings", {})
        if settings.get("DriveCacheType") == _NO_FILE_CACHE:
            del settings["DriveCacheType"]
            path = f"SharedStorage[{item.get('Name')}].FsxLustreSettings.DriveCacheType"
            to.note("moved", path, "NONE is the default")


def _database(config: Config) -> None:
    database = config["Scheduling"].get("SlurmSettings", {}).get("Database", {})
    if "Uri" in database:
        address = str(database["Uri"]).removeprefix("mysql://").rstrip("/")
        database["Uri"] = address if ":" in address else f"{address}:{MYSQL_PORT}"


def _queues(config: Config, to: Translation) -> None:
    for queue in config["Scheduling"].get("SlurmQueues", []):
        resources = queue.get("ComputeResources", [])
        for each in (queue, *resources):
            name = str(each.get("Name"))
            each["Name"] = re.sub(r"[^a-z0-9-]", "-", name.lower())
            if each["Name"] != name:
                words = f"named {each['Name']}: names have lower-case letters, digits and hyphens"
                to.note("replaced", name, words)
        path = f"Scheduling.SlurmQueues[{queue['Name']}]"
        has_zones = len(queue.get("Networking", {}).get("SubnetIds", [])) > 1
        if len(resources) == 1:
            _lift(queue, resources[0], path, to)
        elif queue.get("Networking", {}).get("PlacementGroup") == {"Enabled": True}:
            # ParallelCluster makes a group for each compute resource; ours would be one for all.
            group = queue["Networking"].pop("PlacementGroup")
            for each in resources:
                each.setdefault("Networking", {}).setdefault("PlacementGroup", dict(group))
        for each, at in [
            (queue, path),
            *((each, f"{path}.ComputeResources[{each['Name']}]") for each in resources),
        ]:
            _placement_group(each, at, to, is_block=queue.get("CapacityType") == "CAPACITY_BLOCK")
            if len(each.get("Instances", [])) == 1 and not has_zones:
                each.update(each.pop("Instances")[0])
        if queue.get("JobExclusiveAllocation") is False:
            del queue["JobExclusiveAllocation"]
        if queue.get("Networking", {}).get("PlacementGroup") == {"Enabled": False}:
            del queue["Networking"]["PlacementGroup"]


def _lift(queue: Config, only: Config, path: str, to: Translation) -> None:
    """Give a queue what its only compute resource has for itself."""
    at, words = f"{path}.ComputeResources[{only['Name']}]", "at the queue, whose only compute resource it is"
    if reserved := only.pop("CapacityReservationTarget", None):
        queue["CapacityReservationTarget"] = reserved
        to.note("moved", f"{at}.CapacityReservationTarget", words)
    if group := only.get("Networking", {}).pop("PlacementGroup", None):
        queue.setdefault("Networking", {})["PlacementGroup"] = group
        to.note("moved", f"{at}.Networking.PlacementGroup", words)


def _placement_group(node: Config, path: str, to: Translation, *, is_block: bool) -> None:
    group = node.get("Networking", {}).get("PlacementGroup", {})
    if name := group.pop("Id", None) or group.get("Name"):
        group |= {"Enabled": True, "Name": name}
    if is_block and group.get("Enabled"):
        node["Networking"]["PlacementGroup"] = {"Enabled": False}
        words = "off: a Capacity Block takes no placement group, since its nodes are close together already"
        to.note("replaced", f"{path}.Networking.PlacementGroup", words)
