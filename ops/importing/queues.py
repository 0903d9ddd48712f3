"""Queues of a cluster config as entries of the file of queues."""

from collections.abc import Mapping
from typing import Any

from ops.importing.translation import Config, Translation
from training_cluster.catalog.families import find_instance_type
from training_cluster.queues.queue import OFF, OFFICIAL, ON

_CAPACITY = {"ONDEMAND": "ondemand", "SPOT": "spot"}
_CARRIED = (
    *("Name", "CapacityType", "AllocationStrategy", "JobExclusiveAllocation", "CustomSlurmSettings"),
    *("Image.CustomAmi", "Networking.SubnetIds", "Networking.PlacementGroup"),
    "ComputeSettings.LocalStorage.RootVolume.Size",
)
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
    to.carry(*(f"{path}.{key}" for key in _CARRIED))
    resources = [
        found
        for each in queue.get("ComputeResources", [])
        if (found := _resource(each, f"{path}.ComputeResources[{each.get('Name')}]", to))
    ]
    if not resources:
        to.lose(path, queue, "no compute resource of it can be carried over")
        to.carry(path)
        return None
    entry: dict[str, Any] = {"compute_resources": resources}
    capacity = _capacity(queue, path, to)
    if capacity != "ondemand":
        entry["capacity"] = capacity
    for key, name in {
        "AllocationStrategy": "allocation_strategy",
        "CustomSlurmSettings": "partition",
        "JobExclusiveAllocation": "exclusive",
    }.items():
        if queue.get(key):
            entry[name] = queue[key]
    image = queue.get("Image", {}).get("CustomAmi", to.image)
    if image != OFFICIAL:
        entry["image"] = image
    if size := queue.get("ComputeSettings", {}).get("LocalStorage", {}).get("RootVolume", {}).get("Size"):
        entry["root_gib"] = size
    subnets = queue.get("Networking", {}).get("SubnetIds", [])
    if ours and subnets != [ours]:
        entry["subnet_ids"] = subnets
    entry["placement_group"] = _placement_group(queue) or OFF
    _lift_from_only_resource(entry)
    return entry


def _lift_from_only_resource(entry: dict[str, Any]) -> None:
    """Give a queue what its only compute resource has for itself."""
    resources = entry["compute_resources"]
    if len(resources) == 1:
        (only,) = resources
        if reserved := only.pop("reservation", None):
            is_block = str(entry.get("capacity")).startswith("capacity-block")
            entry["capacity"] = f"{'capacity-block' if is_block else 'reservation'}:{reserved}"
        if group := only.pop("placement_group", None):
            entry["placement_group"] = group


def _resource(resource: Mapping[str, Any], path: str, to: Translation) -> dict[str, Any] | None:
    types = [str(each.get("InstanceType")) for each in resource.get("Instances", [])]
    types = types or [str(resource.get("InstanceType"))]
    keys = ("Name", "InstanceType", "Instances", "MinCount", "MaxCount", "Efa.Enabled")
    to.carry(*(f"{path}.{key}" for key in keys))
    if unknown := [each for each in types if find_instance_type(each) is None]:
        to.lose(path, resource, f"the catalog has no instance type {', '.join(unknown)}")
        return None
    known = [each[1] for name in types if (each := find_instance_type(name))]
    most, least = resource.get("MaxCount", _DEFAULT_MAX), resource.get("MinCount", 0)
    found = {"name": resource.get("Name"), "instance_types": types, "nodes": most}
    if least:
        found["min_nodes"] = least
    efa = bool(resource.get("Efa", {}).get("Enabled", False))
    if not efa and all(each.efa for each in known):
        found["efa"] = False
    if most == 0:
        to.lose(f"{path}.MaxCount", 0, "a compute resource without nodes")
        return None
    to.carry(f"{path}.CapacityReservationTarget", f"{path}.Networking.PlacementGroup")
    if reserved := _reservation(resource):
        found["reservation"] = reserved
    if group := _placement_group(resource):
        found["placement_group"] = group
    return found


def _capacity(queue: Mapping[str, Any], path: str, to: Translation) -> str:
    to.carry(f"{path}.CapacityReservationTarget")
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
    if name := group.get("Name") or group.get("Id"):
        return str(name)
    return None if "Enabled" not in group else ON if group["Enabled"] else OFF
