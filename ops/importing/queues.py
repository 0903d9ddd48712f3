"""Queues of a cluster config as entries of the file of queues."""

from collections.abc import Mapping
from typing import Any

import yaml

from ops.importing.comparison import unlike
from ops.importing.translation import Config, Translation
from training_cluster.catalog.families import find_instance_type
from training_cluster.overrides.reserved import QUEUES, flags_for
from training_cluster.queues.queue import OFF, ON

_DEFAULT_MAX = 10
"""MaxCount of ParallelCluster without the key."""


def take_queues(config: Config, to: Translation) -> None:
    """Take all queues; the first becomes the default partition by `queue_name`."""
    ours = to.flags.get("private_subnet_id")
    for queue in config["Scheduling"].get("SlurmQueues", []):
        name = str(queue.get("Name"))
        entry = _entry(queue, f"Scheduling.SlurmQueues[{name}]", to, ours)
        if entry:
            to.queues[name] = entry
    if to.queues:
        to.flags["queue_name"] = next(iter(to.queues))


def _entry(queue: Mapping[str, Any], path: str, to: Translation, ours: str | None) -> dict[str, Any] | None:
    resources = [
        found
        for each in queue.get("ComputeResources", [])
        if (found := _resource(each, f"{path}.ComputeResources[{each.get('Name')}]", to))
    ]
    if not resources:
        to.lose(path, queue, "no compute resource of it can be carried over")
        return None
    entry = _keys({**queue, "ComputeResources": []}, path)
    if queue.get("CapacityType") == "CAPACITY_BLOCK":
        each = next((each["reservation"] for each in resources if "reservation" in each), None)
        entry["capacity"] = f"capacity-block:{entry['capacity'].partition(':')[2] or each}"
    if not ours or entry.get("subnet_ids") == [ours]:
        entry.pop("subnet_ids", None)
    if partition := queue.get("CustomSlurmSettings"):
        entry["partition"] = partition
    return {"compute_resources": resources, **entry, "placement_group": _placement_group(queue) or OFF}


def _resource(resource: Mapping[str, Any], path: str, to: Translation) -> dict[str, Any] | None:
    keys = {"name": resource.get("Name"), "nodes": _DEFAULT_MAX, **_keys(resource, path)}
    known = {name: find_instance_type(name) for name in keys.get("instance_types", [])}
    if unknown := [name for name, each in known.items() if each is None]:
        to.lose(path, resource, f"the catalog has no instance type {', '.join(unknown)}")
        return None
    if not resource.get("Efa", {}).get("Enabled") and all(each[1].efa for each in known.values() if each):
        keys["efa"] = False
    if group := _placement_group(resource):
        keys["placement_group"] = group
    return keys


def _keys(node: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Return the keys of an entry that render what a queue or a compute resource has."""
    keys: dict[str, Any] = {}
    for each in unlike(node, {}):
        line = yaml.safe_load(dict(flags_for(f"{path}.{each.key}", each.value)).get(QUEUES, "{}"))
        keys |= line.get("compute_resources", [line])[0]
    return keys


def _placement_group(node: Mapping[str, Any]) -> str | None:
    """Return the placement group of a queue or a compute resource, in the words of the file of queues."""
    group = node.get("Networking", {}).get("PlacementGroup", {})
    if "Enabled" not in group:
        return None
    return str(group.get("Name", ON)) if group["Enabled"] else OFF
