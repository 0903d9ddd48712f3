"""Queues of a cluster config as entries of the file of queues."""

from collections.abc import Mapping
from typing import Any

from ops.importing.translation import Config, Translation
from training_cluster.catalog.families import find_instance_type
from training_cluster.queues.queue import OFF, ON

_CAPACITY = {"ONDEMAND": "ondemand", "SPOT": "spot"}
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
    entry: dict[str, Any] = {"compute_resources": resources}
    if (capacity := _capacity(queue)) != "ondemand":
        entry["capacity"] = capacity
    subnets = queue.get("Networking", {}).get("SubnetIds", [])
    root = queue.get("ComputeSettings", {}).get("LocalStorage", {}).get("RootVolume", {})
    given = {
        "allocation_strategy": queue.get("AllocationStrategy"),
        "partition": queue.get("CustomSlurmSettings"),
        "exclusive": queue.get("JobExclusiveAllocation"),
        "image": queue.get("Image", {}).get("CustomAmi"),
        "root_gib": root.get("Size"),
        "subnet_ids": subnets if ours and subnets != [ours] else None,
        "placement_group": _placement_group(queue) or OFF,
    }
    return entry | {key: value for key, value in given.items() if value}


def _resource(resource: Mapping[str, Any], path: str, to: Translation) -> dict[str, Any] | None:
    types = [str(each.get("InstanceType")) for each in resource.get("Instances", [])]
    types = types or [str(resource.get("InstanceType"))]
    if unknown := [each for each in types if find_instance_type(each) is None]:
        to.lose(path, resource, f"the catalog has no instance type {', '.join(unknown)}")
        return None
    known = [each[1] for name in types if (each := find_instance_type(name))]
    efa = bool(resource.get("Efa", {}).get("Enabled", False))
    found = {
        "name": resource.get("Name"),
        "instance_types": types,
        "nodes": resource.get("MaxCount", _DEFAULT_MAX),
        "min_nodes": resource.get("MinCount"),
        "efa": False if not efa and all(each.efa for each in known) else None,
        "reservation": _reservation(resource),
        "placement_group": _placement_group(resource),
    }
    return {key: value for key, value in found.items() if value not in (None, 0) or value is False}


def _capacity(queue: Mapping[str, Any]) -> str:
    kind, reserved = str(queue.get("CapacityType", "ONDEMAND")), _reservation(queue)
    if kind == "CAPACITY_BLOCK":
        ids = [_reservation(each) for each in queue.get("ComputeResources", [])]
        return f"capacity-block:{reserved or next((each for each in ids if each), None)}"
    return f"reservation:{reserved}" if reserved else _CAPACITY.get(kind, "ondemand")


def _reservation(node: Mapping[str, Any]) -> str | None:
    """Return the reservation of a queue or a compute resource, or the ARN of a group of them."""
    target = node.get("CapacityReservationTarget", {})
    found = target.get("CapacityReservationId") or target.get("CapacityReservationResourceGroupArn")
    return str(found) if found else None


def _placement_group(node: Mapping[str, Any]) -> str | None:
    """Return the placement group of a queue or a compute resource, in the words of the file of queues."""
    group = node.get("Networking", {}).get("PlacementGroup", {})
    if "Enabled" not in group:
        return None
    return str(group.get("Name", ON)) if group["Enabled"] else OFF
