"""EFA interfaces with which nodes reach Lustre (fsx_efa=on)."""

from training_cluster.catalog.families import load_base
from training_cluster.cluster.nodes import Rendered
from training_cluster.cluster.queues import types_of
from training_cluster.flags.settings import Settings


def lustre_interfaces(config: Rendered, settings: Settings) -> dict[str, int]:
    """Return, by queue, the EFA interfaces with which each node reaches Lustre; 0: over TCP.

    All nodes together stay within FSx's limit. Queues in subnets of their own may be in another zone, which
    EFA does not cross.
    """
    queues = {each["Name"]: each["ComputeResources"] for each in config["Scheduling"]["SlurmQueues"]}
    usual = usual_interfaces(config, settings)
    most = next(
        count
        for count in range(max(usual.values(), default=0), -1, -1)
        if sum(
            min(count, usual[name]) * resource["MaxCount"]
            for name, resources in queues.items()
            for resource in resources
        )
        <= load_base().lustre_efa.most_connections
    )
    return {name: min(most, count) for name, count in usual.items()}


def usual_interfaces(config: Rendered, settings: Settings) -> dict[str, int]:
    """Return what lustre_interfaces returns for a few nodes."""
    elsewhere = {each.name for each in settings.all_queues if each.subnet_ids}
    return {
        queue["Name"]: 0
        if settings.fsx_efa == "off" or queue["Name"] in elsewhere
        else min(map(_of_resource, queue["ComputeResources"]))
        for queue in config["Scheduling"]["SlurmQueues"]
    }


def _of_resource(resource: Rendered) -> int:
    limits, types = load_base().lustre_efa, types_of(resource)
    has_efa = (resource.get("Efa") or {}).get("Enabled")
    if not has_efa or any(each.family.name in limits.without for each in types):
        return 0
    return min(limits.most_interfaces, *(each.size.efa_interfaces for each in types))
