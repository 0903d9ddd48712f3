"""Environment of jobs, with the facts of their nodes: a file of `export NAME=value` lines a partition."""

from collections.abc import Mapping, Sequence

from training_cluster.catalog.families import load_base
from training_cluster.catalog.family import EnvironmentVariable
from training_cluster.cluster.lustre_client import lustre_interfaces
from training_cluster.cluster.nodes import USERS_PREFIX, Rendered, has_users
from training_cluster.cluster.queues import capacity_of, scratch_of, types_of
from training_cluster.flags.settings import Settings
from training_cluster.queues.queue import ONE_USER, NodeType
from training_cluster.sizing import lustre_of
from training_cluster.stack_names import jobs_topic


def render_job_environments(config: Rendered, settings: Settings) -> dict[str, str]:
    """Render the environment of every partition, by the partition's name.

    Args:
        config: the final cluster config.
        settings: flags, for what the config lacks: workloads, the new Lustre's throughput and EFA, mail.
    """
    shared = lustre_of(settings)
    of_all = {
        "SHARED_MBPS": int(shared.write_mbps) if shared else "",
        "SHARED_READ_MBPS": int(shared.read_mbps) if shared else "",
    }
    workloads = {each.name: " ".join(each.workloads) for each in settings.all_queues}
    interfaces = lustre_interfaces(config, settings)
    more = f"export JOB_TOPIC='{jobs_topic(settings.cluster_name)}'\n" if settings.job_emails else ""
    if has_users(config):
        more += f'export TRAINING_UPLOADS="{USERS_PREFIX}/${{SLURM_JOB_USER-}}"\n'
    return {
        name: _render(
            queue, of_all | {"WORKLOADS": workloads[name], "LUSTRE_EFA_INTERFACES": interfaces[name]}
        )
        + more
        + (_SHARED if queue.get("CustomSlurmSettings", {}).get(ONE_USER) == "NO" else "")
        for queue in config["Scheduling"]["SlurmQueues"]
        for name in (queue["Name"],)
    }


_SHARED = """\
export SHARED_NODES='yes'
# Slurm gives a step of a job that takes whole nodes only the GPUs that the step names, and closes all others.
if [ -n "${SLURM_GPUS_ON_NODE-}" ]; then export SLURM_GPUS_PER_NODE="$SLURM_GPUS_ON_NODE"; fi
"""


def _render(queue: Rendered, more: Mapping[str, object]) -> str:
    resources = queue["ComputeResources"]
    types = list({each.name: each for resource in resources for each in types_of(resource)}.values())
    facts = _common([_facts(each) for each in types]) | {
        "CAPACITY": capacity_of(queue),
        "PLACEMENT_GROUP": "yes" if all(_is_placed(queue, each) for each in resources) else "no",
        # For the bootstrap and the node's health, more than for jobs.
        "IMAGE_RECIPE": types[0].family.image_recipe,
        "EFA_INTERFACES": _efa_interfaces(resources),
        "SCRATCH": scratch_of(queue) or "",
        **more,
    }
    names = ", ".join(each.name for each in types)
    files = ", ".join(dict.fromkeys(f"cluster_configs/{each.family.name}.yaml" for each in types))
    lines = [f"# What jobs know of {names}, rendered from {files}."]
    lines += [f"export {name}='{facts[name]}'" for name in FACTS]
    common = load_base().efa_environment if any(map(_has_efa, resources)) else ()
    for variable in (*common, *_shared_variables(types)):
        # A job's own value wins: this one only tunes.
        line = f'export {variable.name}="${{{variable.name}-{variable.value}}}"'
        lines += [f"# {variable.since}: {variable.reason}", line]
    return "\n".join(lines) + "\n"


FACTS = (
    *("FAMILY", "INSTANCE_TYPE", "ACCELERATOR_KIND", "ACCELERATORS_PER_NODE", "RANKS_PER_NODE"),
    *("ACCELERATOR_MEMORY_GIB", "ACCELERATOR_PEAK_TFLOPS", "MIXED_PRECISION", "COMPUTE_CAPABILITY"),
    *("NETWORK_GBPS", "NCCL_FLOORS"),
    *("CAPACITY", "SHARED_MBPS", "SHARED_READ_MBPS", "PLACEMENT_GROUP", "IMAGE_RECIPE", "WORKLOADS"),
    *("EFA_INTERFACES", "LUSTRE_EFA_INTERFACES", "SCRATCH"),
)
"""Variables of every partition, in their order; they replace a job's own, except MIXED_PRECISION."""


def _facts(type_: NodeType) -> dict[str, object]:
    family, size = type_.family, type_.size
    accelerator = family.accelerator
    return {
        "FAMILY": family.name,
        "INSTANCE_TYPE": type_.name,
        "ACCELERATOR_KIND": accelerator.kind,
        "ACCELERATORS_PER_NODE": size.accelerators,
        # One rank a GPU or a NeuronCore; a CPU node is one rank.
        "RANKS_PER_NODE": size.accelerators * accelerator.cores or 1,
        "ACCELERATOR_MEMORY_GIB": accelerator.memory_gib or "",
        "ACCELERATOR_PEAK_TFLOPS": accelerator.peak_bf16_tflops or "",
        "MIXED_PRECISION": family.mixed_precision,
        "COMPUTE_CAPABILITY": accelerator.compute_capability or "",
        "NETWORK_GBPS": size.network_gbps or "",
        # nodes:message in GiB:bus bandwidth in GB/s, of all_reduce_perf.
        "NCCL_FLOORS": " ".join(
            f"{floor.nodes}:{floor.message_gib:g}:{floor.busbw_gb_per_s:g}" for floor in family.nccl_floors
        ),
    }


def _common(all_facts: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return facts that hold for each of the queue's instance types; the rules refuse other accelerators."""
    common: dict[str, object] = {}
    for name in all_facts[0]:
        values = list(dict.fromkeys(facts[name] for facts in all_facts))
        if len(values) == 1:
            common[name] = values[0]
        elif name in {"FAMILY", "INSTANCE_TYPE"}:
            common[name] = " ".join(map(str, values))
        elif name == "MIXED_PRECISION":
            common[name] = next(each for each in ("no", "fp16", "bf16") if each in values)
        else:
            common[name] = ""  # unknown, or not on every node
    return common


def _is_placed(queue: Rendered, resource: Rendered) -> bool:
    """Return True when nodes are in a placement group; a compute resource's own wins over its queue's."""
    group = (resource.get("Networking") or queue["Networking"]).get("PlacementGroup") or {}
    return bool(group.get("Enabled") or group.get("Name"))


def _has_efa(resource: Rendered) -> bool:
    return bool((resource.get("Efa") or {}).get("Enabled"))


def _efa_interfaces(resources: Sequence[Rendered]) -> int:
    """Return the EFA interfaces of every node; 0 where they differ: the nodes are not checked for them.

    ParallelCluster gives all types of a compute resource as many as the type with the fewest has
    (InstancesNetworkingValidator).
    """
    found = {
        min(each.size.efa_interfaces for each in types_of(resource)) if _has_efa(resource) else 0
        for resource in resources
    }
    return found.pop() if len(found) == 1 else 0


def _shared_variables(types: Sequence[NodeType]) -> list[EnvironmentVariable]:
    first, *others = [each.family.job_environment for each in types]
    return [each for each in first if all(each in other for other in others)]


def render_links(settings: Settings) -> str:
    """Render other paths of the shared folders: `link folder`, one a line, each after those on its way."""
    base = load_base()
    # With home=efs the EFS file system is /home, and it can be mounted only once.
    home = {base.efs_dir: f"/home{base.efs_dir}"} if settings.home == "efs" else {}
    links = home | base.links | settings.family_facts.links
    return "".join(f"{link} {folder}\n" for link, folder in links.items())
