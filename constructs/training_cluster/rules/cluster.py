"""Rules between flags: combinations that ParallelCluster or AWS would refuse later, found before a deploy.

Each rule is a function that yields contradictions, with what to type instead. Flags that work badly together
are advice (advice.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from training_cluster.catalog.families import find_instance_type, head_node_size, load_base
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.problems import Contradiction, did_you_mean
from training_cluster.rules.image import IMAGE_RULES
from training_cluster.rules.network import NETWORK_RULES
from training_cluster.rules.storage import STORAGE_RULES

if TYPE_CHECKING:
    from training_cluster.flags.settings import Settings

# ParallelCluster's limit of a cluster's name with Slurm accounting: the database takes its name.
NAME_LIMIT_WITH_ACCOUNTING = 40


Rule = Callable[["Settings"], Iterator[Contradiction]]


def contradictions(settings: Settings) -> list[Contradiction]:
    """Return all contradictions between the flags."""
    found = list(_size_is_of_the_family(settings))
    # The other rules need the facts of the size.
    return found or [each for rule in _RULES for each in rule(settings)]


def _size_is_of_the_family(settings: Settings) -> Iterator[Contradiction]:
    family, asked = settings.family_facts, settings.instance_type
    if asked and asked not in family.sizes:
        elsewhere = find_instance_type(asked)
        hint = "" if elsewhere else did_you_mean(asked, family.sizes)
        yield Contradiction(
            problem=f"instance_type={asked}: family {family.name} has {', '.join(family.sizes)}.{hint}",
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


def _capacity_is_sold(settings: Settings) -> Iterator[Contradiction]:
    kind, sold = settings.capacity_type, settings.family_facts.capacity_of(settings.compute_type)
    if kind not in sold:
        others = [each for each in ("ondemand", "spot", "reservation", "capacity-block") if each in sold]
        yield Contradiction(
            problem=f"capacity={settings.capacity}: EC2 does not sell {settings.compute_type} so, only as "
            f"{', '.join(others)}",
            mend="-c capacity=ondemand",
        )


def _capacity_block_always_runs(settings: Settings) -> Iterator[Contradiction]:
    asked = "min_nodes" in settings.model_fields_set
    if settings.capacity_type == "capacity-block" and asked and settings.min_nodes < settings.nodes:
        yield Contradiction(
            problem=f"min_nodes={settings.min_nodes}: all nodes of a Capacity Block run from its start to "
            f"its end, so min_nodes is nodes={settings.nodes}",
            mend=f"-c min_nodes={settings.nodes}, or leave it out",
        )


def _capacity_block_has_no_group(settings: Settings) -> Iterator[Contradiction]:
    named = settings.placement_group not in {"auto", "off"}
    if settings.capacity_type == "capacity-block" and named:
        yield Contradiction(
            problem=f"placement_group={settings.placement_group}: a Capacity Block stands close together by "
            "itself, and another group would leave it without its capacity",
            mend="-c placement_group=off",
        )


def _placement_group_is_a_name(settings: Settings) -> Iterator[Contradiction]:
    if settings.placement_group in {"on", "yes", "true", "new"}:
        yield Contradiction(
            problem=f"placement_group={settings.placement_group} would be the name of an existing group",
            mend="-c placement_group=auto",
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


def _cpu_queue_stands_beside_accelerators(settings: Settings) -> Iterator[Contradiction]:
    asked, family = settings.cpu_queue, settings.family_facts
    if asked == "off":
        return
    if family.queue == load_base().cpu_queue.name:
        yield Contradiction(
            problem=f"cpu_queue={asked}: the nodes of {family.name} are the queue {family.queue} already",
            mend="-c cpu_queue=off",
        )
        return
    known = find_instance_type(asked) if asked != "on" else None
    if asked != "on" and (known is None or known[0].accelerator.kind != "none"):
        yield Contradiction(
            problem=f"cpu_queue={asked}: no instance type of a family without accelerators "
            "(docs/families.md)",
            mend="-c cpu_queue=on",
        )


def _accounting_is_complete(settings: Settings) -> Iterator[Contradiction]:
    kind, secret = settings.accounting, settings.accounting_secret
    own = kind not in {"off", "new"}
    if own and secret is None:
        yield Contradiction(
            problem=f"accounting={kind}: the password of your database is missing",
            mend="-c accounting_secret=arn:aws:secretsmanager:...",
        )
    for flag in ("accounting_secret", "accounting_user"):
        if not own and flag in settings.model_fields_set:
            yield Contradiction(
                problem=f"{flag} is for a database of yours, and accounting={kind} is none",
                mend=f"-c accounting=HOST:3306, or leave {flag} out",
            )
    if kind == "new" and settings.vpc_id:
        yield Contradiction(
            problem="accounting=new needs two more subnets, which are not added to a VPC of yours",
            mend="-c accounting=HOST:3306 -c accounting_secret=arn:...",
        )
    if kind != "off" and len(settings.cluster_name) > NAME_LIMIT_WITH_ACCOUNTING:
        yield Contradiction(
            problem=f"cluster_name={settings.cluster_name} has {len(settings.cluster_name)} characters; with "
            f"accounting, ParallelCluster takes {NAME_LIMIT_WITH_ACCOUNTING}",
            mend=f"-c cluster_name={settings.cluster_name[:NAME_LIMIT_WITH_ACCOUNTING].rstrip('-')}",
        )


def _head_node_has_the_memory(settings: Settings) -> Iterator[Contradiction]:
    known = head_node_size(settings.head_type)
    # ParallelCluster's HeadNodeMemorySizeValidator.
    needed = min(settings.most_nodes / 25 + 0.6, 16)
    if known and known.memory_gib < needed:
        types = load_base().head_node.types.items()
        fits = next(name for name, size in types if size.memory_gib >= needed)
        yield Contradiction(
            problem=f"head_node_type={settings.head_type} has {known.memory_gib} GiB of memory, and "
            f"{settings.most_nodes} nodes take {needed:.2f}",
            mend=f"-c head_node_type={fits}",
        )


def _budget_tells_somebody(settings: Settings) -> Iterator[Contradiction]:
    if settings.budget_usd and not settings.alarm_email:
        yield Contradiction(
            problem=f"budget_usd={settings.budget_usd}: nobody would be told, since alarm_email is missing",
            mend=f"-c budget_usd={settings.budget_usd} -c alarm_email=me@example.com",
        )


_RULES: tuple[Rule, ...] = (
    *NETWORK_RULES,
    *STORAGE_RULES,
    *IMAGE_RULES,
    _least_is_not_above_most,
    _capacity_is_sold,
    _capacity_block_always_runs,
    _capacity_block_has_no_group,
    _placement_group_is_a_name,
    _family_is_supported,
    _cpu_queue_stands_beside_accelerators,
    _accounting_is_complete,
    _head_node_has_the_memory,
    _budget_tells_somebody,
)
