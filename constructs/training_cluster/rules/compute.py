"""Rules about the compute nodes: family, size, capacity, placement group, the CPU queue."""

from collections.abc import Iterator

from training_cluster.catalog.families import find_instance_type, load_base
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.problems import Contradiction, did_you_mean


def size_is_of_the_family(settings: Settings) -> Iterator[Contradiction]:
    """Refuse an instance type that the family does not have."""
    family, asked = settings.family_facts, settings.instance_type
    if asked and asked not in family.sizes:
        elsewhere = find_instance_type(asked)
        hint = "" if elsewhere else did_you_mean(asked, family.sizes)
        known = "" if elsewhere else "cluster_configs/ has no such type; "
        has = f"family {family.name} has {', '.join(family.sizes)}"
        yield Contradiction(
            problem=f"instance_type={asked}: {known}{has}.{hint}",
            mend=f"-c family={elsewhere[0].name} -c instance_type={asked}"
            if elsewhere
            else f"-c instance_type={family.main_size}",
        )


def _least_is_not_above_most(settings: Settings) -> Iterator[Contradiction]:
    if settings.min_nodes > settings.nodes:
        yield Contradiction(
            problem=f"min_nodes={settings.min_nodes} is more than nodes={settings.nodes}",
            mend=f"-c nodes={settings.min_nodes}",
        )


def _capacity_block_always_runs(settings: Settings) -> Iterator[Contradiction]:
    asked = "min_nodes" in settings.model_fields_set
    if settings.capacity.startswith("capacity-block") and asked and settings.min_nodes < settings.nodes:
        yield Contradiction(
            problem=f"min_nodes={settings.min_nodes}: all nodes of a Capacity Block run from its start to "
            f"its end, so min_nodes is nodes={settings.nodes}",
            mend=f"-c min_nodes={settings.nodes}, or leave it out",
        )


def _placement_group_is_a_name(settings: Settings) -> Iterator[Contradiction]:
    if settings.placement_group in {"yes", "true", "new"}:
        yield Contradiction(
            problem=f"placement_group={settings.placement_group} would be the name of an existing group",
            mend="-c placement_group=on",
        )


def _family_is_supported(settings: Settings) -> Iterator[Contradiction]:
    family = settings.family_facts
    ours, needed = (tuple(map(int, v.split("."))) for v in (PCLUSTER_VERSION, family.pcluster_min_version))
    if ours < needed:
        yield Contradiction(
            problem=f"family={family.name} needs ParallelCluster {family.pcluster_min_version}, and this app "
            f"has {PCLUSTER_VERSION}",
            mend="another family, or take a newer release of this app",
        )


def _cpu_queue_is_beside_accelerators(settings: Settings) -> Iterator[Contradiction]:
    asked, ours = settings.cpu_queue, settings.first_queue.name
    if asked == "off":
        return
    if ours == load_base().cpu_queue.name:
        yield Contradiction(
            problem=f"cpu_queue={asked}: the queue {ours} already has the nodes of {settings.family}",
            mend="-c cpu_queue=off",
        )
        return
    known = find_instance_type(asked) if asked != "on" else None
    if asked != "on" and (known is None or known[0].accelerator.kind != "none"):
        yield Contradiction(
            problem=f"cpu_queue={asked}: no instance type without accelerators (docs/families.md)",
            mend="-c cpu_queue=on",
        )


COMPUTE_RULES = (
    _least_is_not_above_most,
    _capacity_block_always_runs,
    _placement_group_is_a_name,
    _family_is_supported,
    _cpu_queue_is_beside_accelerators,
)
