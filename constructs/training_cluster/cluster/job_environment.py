"""Environment of jobs, with the facts of their nodes: a file of `export NAME=value` lines a partition."""

from __future__ import annotations

from training_cluster.catalog.families import load_base
from training_cluster.catalog.family import CapacityType, Family, Size
from training_cluster.flags.settings import Settings


def render_job_environments(settings: Settings) -> dict[str, str]:
    """Render the environment of every partition, by the partition's name."""
    family = settings.family_facts
    placed = settings.wants_new_placement_group or settings.named_placement_group is not None
    shared_mbps = _shared_mbps(settings)
    main = _render(
        family,
        settings.compute_type,
        settings.size,
        capacity=settings.capacity_type,
        shared_mbps=shared_mbps,
        placed=placed,
        workloads=settings.node_workloads,
    )
    found = {family.queue: main}
    cpu_type, beside = settings.cpu_queue_type, settings.cpu_queue_facts
    if cpu_type and beside:
        cpu_family, cpu_size = beside
        # Bought on demand and without a placement group, as in queues.py.
        found[load_base().cpu_queue.name] = _render(
            cpu_family, cpu_type, cpu_size, capacity="ondemand", shared_mbps=shared_mbps
        )
    return found


def _shared_mbps(settings: Settings) -> int | None:
    """Return the throughput of the Lustre file system in MB/s; None if it exists already."""
    if settings.fsx_id:
        return None
    per_tib = 200 if settings.fsx_type == "scratch2" else int(settings.fsx_mbps_per_tib)
    return settings.fsx_gib * per_tib // 1024


def _render(
    family: Family,
    instance_type: str,
    size: Size,
    *,
    capacity: CapacityType,
    shared_mbps: int | None,
    placed: bool = False,
    workloads: tuple[str, ...] = (),
) -> str:
    accelerator = family.accelerator
    facts = {
        "FAMILY": family.name,
        "INSTANCE_TYPE": instance_type,
        "ACCELERATOR_KIND": accelerator.kind,
        "ACCELERATORS_PER_NODE": size.accelerators,
        # One rank a GPU or a NeuronCore; a CPU node is one rank.
        "RANKS_PER_NODE": size.accelerators * accelerator.cores or 1,
        "ACCELERATOR_PEAK_TFLOPS": accelerator.peak_bf16_tflops or "",
        "MIXED_PRECISION": family.mixed_precision,
        "COMPUTE_CAPABILITY": accelerator.compute_capability or "",
        "NETWORK_GBPS": size.network_gbps or "",
        # nodes:message in GiB:bus bandwidth in GB/s, of all_reduce_perf.
        "NCCL_FLOORS": " ".join(
            f"{floor.nodes}:{floor.message_gib:g}:{floor.busbw_gb_per_s:g}" for floor in family.nccl_floors
        ),
        "CAPACITY": capacity,
        # From which the time to save a checkpoint is estimated.
        "SHARED_MBPS": shared_mbps or "",
        "PLACEMENT_GROUP": "yes" if placed else "no",
        # For the bootstrap and the node's health, more than for jobs.
        "IMAGE_RECIPE": family.image_recipe,
        "WORKLOADS": " ".join(workloads),
        "EFA_INTERFACES": size.efa_interfaces,
        "SCRATCH": family.scratch if family.scratch and size.nvme_gb else "",
    }
    lines = [f"# What jobs know of {instance_type}, rendered from cluster_configs/{family.name}.yaml."]
    lines += [f"export {name}='{value}'" for name, value in facts.items()]
    common = load_base().efa_environment if size.efa_interfaces else ()
    for variable in (*common, *family.job_environment):
        lines += [f"# {variable.since}: {variable.reason}", f"export {variable.name}='{variable.value}'"]
    return "\n".join(lines) + "\n"


def render_links(settings: Settings) -> str:
    """Render other paths of the shared folders: `link folder`, one a line, each after those on its way."""
    base = load_base()
    # With home=efs the EFS file system is /home, and it can be mounted only once.
    home = {base.efs_dir: f"/home{base.efs_dir}"} if settings.home == "efs" else {}
    links = home | base.links | settings.family_facts.links
    return "".join(f"{link} {folder}\n" for link, folder in links.items())
