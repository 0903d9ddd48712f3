"""Instance types and reservations of a cluster config that the network's zone has to offer."""

from typing import Any

from training_cluster.catalog.families import load_base
from training_cluster.cluster.fleet import fleet
from training_cluster.cluster.nodes import Rendered
from training_cluster.cluster.resource_ids import network_subnets
from training_cluster.flags.settings import Settings
from training_cluster.queues.queue import BUILD


def zone_needs(settings: Settings, config: Rendered) -> dict[str, Any]:
    """Return the input of the function that chooses the zone (assets/compute_zone), by property.

    Args:
        config: the final cluster config, with placeholders or flags for the network's subnets. Nodes with
            other subnets may be in other zones.
    """
    nodes = [each for each in fleet(config) if network_subnets(settings) & each.subnets]
    types = {type_ for each in nodes for type_ in each.types}
    if settings.node_image == BUILD:
        types.add(load_base().image_recipes[settings.family_facts.image_recipe].build_instance_type)
    reserved: dict[str, dict[str, Any]] = {}
    for each in nodes:
        if id_ := each.reservation:
            entry = reserved.setdefault(id_, {"Id": id_, "Queue": each.queue, "Types": []})
            entry["Types"] = sorted({*entry["Types"], *each.types})
    return {"Zone": settings.zone, "InstanceTypes": sorted(types), "Reservations": list(reserved.values())}
