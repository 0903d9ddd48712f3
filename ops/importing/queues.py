"""Queues of a cluster config as entries of the file of queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ops.importing.translation import Config, Translation
from training_cluster.catalog.families import find_instance_type

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
    to.carry(
        *(f"{path}.{key}" for key in ("Name", "CapacityType", "AllocationStrategy", "JobExclusiveAllocation"))
    )
    to.carry(*(f"{path}.{key}" for key in ("CustomSlurmSettings", "Image.CustomAmi", "Networking.SubnetIds")))
    to.carry(f"{path}.ComputeSettings.LocalStorage.RootVolume.Size", f"{path}.Networking.PlacementGroup")
    resources = [
        found
        for each in queue.get("ComputeResources", [])
        if (found := _resource(each, queue, f"{path}.ComputeResources[{each.get('Name')}]", to))
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
    if image := queue.get("Image", {}).get("CustomAmi"):
        entry["image"] = image
    if size := queue.get("ComputeSettings", {}).get("LocalStorage", {}).get("RootVolume", {}).get("Size"):
        entry["root_gib"] = size
    subnets = queue.get("Networking", {}).get("SubnetIds", [])
    if ours and subnets != [ours]:
        entry["subnet_ids"] = subnets
    entry["placement_group"] = _placement_group(queue)
    return entry


def _resource(
    resource: Mapping[str, Any], queue: Mapping[str, Any], path: str, to: Translation
) -> dict[str, Any] | None:
    types = [str(each.get("InstanceType")) for each in resource.get("Instances", [])]
    types = types or [str(resource.get("InstanceType"))]
    keys = ("Name", "InstanceType", "Instances", "MinCount", "MaxCount", "Efa.Enabled")
    to.carry(*(f"{path}.{key}" for key in keys))
    if unknown := [each for each in types if find_instance_type(each) is None]:
        to.lose(path, resource, f"EC2 has no instance type {', '.join(unknown)}, as far as is known here")
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
    target = resource.get("CapacityReservationTarget")
    to.carry(f"{path}.CapacityReservationTarget")
    if target and (len(queue.get("ComputeResources", [])) > 1 or "CapacityReservationId" not in target):
        to.lose(f"{path}.CapacityReservationTarget", target, "a queue has one reservation, by its id")
    return found


def _capacity(queue: Mapping[str, Any], path: str, to: Translation) -> str:
    kind, target = str(queue.get("CapacityType", "ONDEMAND")), queue.get("CapacityReservationTarget", {})
    to.carry(f"{path}.CapacityReservationTarget")
    id_ = target.get("CapacityReservationId")
    for each in queue.get("ComputeResources", []):
        id_ = id_ or each.get("CapacityReservationTarget", {}).get("CapacityReservationId")
    if "CapacityReservationResourceGroupArn" in target:
        to.lose(f"{path}.CapacityReservationTarget", target, "a reservation is given by its id (-c capacity)")
    if kind == "CAPACITY_BLOCK":
        return f"capacity-block:{id_}"
    return f"reservation:{id_}" if id_ else _CAPACITY.get(kind, "ondemand")


def _placement_group(queue: Mapping[str, Any]) -> str:
    group = queue.get("Networking", {}).get("PlacementGroup", {})
    name = group.get("Name") or group.get("Id")
    if name:
        return str(name)
    return "auto" if group.get("Enabled") else "off"
