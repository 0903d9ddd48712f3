"""Instance types and reservations of a cluster config that the network's zone has to offer."""

import itertools
from collections.abc import Iterator
from typing import Any

from training_cluster.catalog.families import load_base
from training_cluster.cluster.nodes import Rendered, login_pools
from training_cluster.cluster.resource_ids import placeholders, with_existing
from training_cluster.flags.settings import Settings
from training_cluster.queues.queue import BUILD

_IDS = placeholders(image_id=None, bootstrap_budget_s=0)


def zone_needs(settings: Settings, config: Rendered) -> dict[str, Any]:
    """Return the input of the function that chooses the zone (assets/compute_zone), by property.

    Args:
        config: the final cluster config, with placeholders or flags for the network's subnets. Nodes with
            other subnets may be in other zones.
    """
    ids = with_existing(_IDS, settings)
    ours = {ids.public_subnet_id, ids.private_subnet_id}
    queues = [each for each in config["Scheduling"]["SlurmQueues"] if _is_in(ours, each)]
    pools = [each for each in login_pools(config) if _is_in(ours, each)]
    nodes = [config["HeadNode"], *pools, *(each for queue in queues for each in queue["ComputeResources"])]
    types = {type_ for node in nodes for type_ in _types(node)}
    if settings.node_image == BUILD:
        types.add(load_base().image_recipes[settings.family_facts.image_recipe].build_instance_type)
    reserved: dict[str, dict[str, Any]] = {}
    for name, id_, of in itertools.chain.from_iterable(map(_reservations, queues)):
        entry = reserved.setdefault(id_, {"Id": id_, "Queue": name, "Types": []})
        entry["Types"] = sorted({*entry["Types"], *of})
    return {"Zone": settings.zone, "InstanceTypes": sorted(types), "Reservations": list(reserved.values())}


def _is_in(subnets: set[str], node: Rendered) -> bool:
    return bool(subnets & set(node["Networking"]["SubnetIds"]))


def _types(node: Rendered) -> list[str]:
    instances: list[Rendered] = node.get("Instances", [])
    return [node["InstanceType"]] if "InstanceType" in node else [each["InstanceType"] for each in instances]


def _reservations(queue: Rendered) -> Iterator[tuple[str, str, list[str]]]:
    """Yield a queue's name, the id of a reservation or the ARN of a group, and the types that use it."""
    for resource in queue["ComputeResources"]:
        target = resource.get("CapacityReservationTarget") or queue.get("CapacityReservationTarget") or {}
        for id_ in target.values():
            yield queue["Name"], id_, _types(resource)
