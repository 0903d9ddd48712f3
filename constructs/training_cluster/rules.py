"""Rules between flags: what ParallelCluster or AWS would refuse later, refused before anything happens.

Each rule is one function that yields what contradicts, with what to type instead. What a cluster
merely does badly is advice (advice.py).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from training_cluster.cluster_flags import PCLUSTER_VERSION
from training_cluster.families import find_instance_type, head_node_size, load_base
from training_cluster.problems import did_you_mean

if TYPE_CHECKING:
    from training_cluster.settings import Settings

# ParallelCluster's limit of a cluster's name with Slurm accounting: the database takes its name.
NAME_LIMIT_WITH_ACCOUNTING = 40

# The private subnet is a /17; AWS keeps five addresses of each, file systems and endpoints take some.
PRIVATE_ADDRESSES = 2**15 - 5
RESERVED_ADDRESSES = 64


# The largest network that one owner has: 10.0.0.0/8 among the private ones.
WIDEST_PREFIX = 8


@dataclass(frozen=True, kw_only=True)
class Contradiction:
    """Values that do not go together."""

    problem: str
    mend: str
    """What to type instead."""


Rule = Callable[["Settings"], Iterator[Contradiction]]


def contradictions(settings: Settings) -> list[Contradiction]:
    """Everything about the flags that cannot work; empty when all is well."""
    found = list(_size_is_of_the_family(settings))
    # The others ask for the size's facts.
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
    kind, sold = settings.bought.kind, settings.family_facts.capacity_of(settings.compute_type)
    if kind not in sold:
        others = [each for each in ("ondemand", "spot", "reservation", "capacity-block") if each in sold]
        yield Contradiction(
            problem=f"capacity={settings.capacity}: EC2 does not sell {settings.compute_type} so, only as "
            f"{', '.join(others)}",
            mend="-c capacity=ondemand",
        )


def _capacity_block_always_runs(settings: Settings) -> Iterator[Contradiction]:
    asked = "min_nodes" in settings.model_fields_set
    if settings.bought.kind == "capacity-block" and asked and settings.min_nodes < settings.nodes:
        yield Contradiction(
            problem=f"min_nodes={settings.min_nodes}: all nodes of a Capacity Block run from its start to "
            f"its end, so min_nodes is nodes={settings.nodes}",
            mend=f"-c min_nodes={settings.nodes}, or leave it out",
        )


def _capacity_block_has_no_group(settings: Settings) -> Iterator[Contradiction]:
    named = settings.placement_group not in {"auto", "off"}
    if settings.bought.kind == "capacity-block" and named:
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


def _image_runs_on_the_family(settings: Settings) -> Iterator[Contradiction]:
    family = settings.family_facts
    if settings.image == "official" and family.official_image_refused:
        yield Contradiction(
            problem=f"image=official does not run on {family.name}: {family.official_image_refused}",
            mend="-c image=build, or an AMI of yours: -c image=ami-...",
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


def _own_network_is_complete(settings: Settings) -> Iterator[Contradiction]:
    needed = ("vpc_id", "public_subnet_id", "private_subnet_id")
    given = [flag for flag in (*needed, "security_group_id") if getattr(settings, flag)]
    missing = [flag for flag in needed if not getattr(settings, flag)]
    if given and missing:
        yield Contradiction(
            problem=f"{given[0]} is given, but not {' and '.join(missing)}: your own network comes whole",
            mend=" ".join(f"-c {flag}=..." for flag in missing),
        )
    if given and settings.zone != "auto":
        yield Contradiction(
            problem=f"zone={settings.zone}: the zone is that of {given[0]}",
            mend="leave zone out",
        )
    same = settings.public_subnet_id is not None and settings.public_subnet_id == settings.private_subnet_id
    if same:
        yield Contradiction(
            problem=f"public_subnet_id and private_subnet_id are both {settings.public_subnet_id}; nodes "
            "with EFA need a subnet without public addresses",
            mend="-c private_subnet_id=...",
        )


def _own_network_is_left_alone(settings: Settings) -> Iterator[Contradiction]:
    if settings.vpc_id and settings.endpoints == "private":
        yield Contradiction(
            problem="endpoints=private adds endpoints to a VPC of ours; your own is used unchanged",
            mend="-c endpoints=none, and add them yourself",
        )
    if settings.security_group_id and settings.ssh_from:
        yield Contradiction(
            problem=f"ssh_from={settings.ssh_from} adds a rule to a security group of ours; your own is used "
            "unchanged",
            mend="leave ssh_from out, and open port 22 there",
        )


def _the_world_stays_out(settings: Settings) -> Iterator[Contradiction]:
    wide = settings.ssh_from and ipaddress.IPv4Network(settings.ssh_from).prefixlen < WIDEST_PREFIX
    if wide and settings.ssh_from_anywhere == "no":
        yield Contradiction(
            problem=f"ssh_from={settings.ssh_from} opens port 22 to the internet",
            mend="-c ssh_from=YOUR.ADDRESS/32, or, if you mean it: -c ssh_from_anywhere=yes",
        )
    if settings.ssh_from_anywhere == "yes" and not settings.ssh_from:
        yield Contradiction(
            problem="ssh_from_anywhere=yes says nothing without ssh_from", mend="-c ssh_from=0.0.0.0/0"
        )


def _given_storage_is_left_alone(settings: Settings) -> Iterator[Contradiction]:
    for own, ours in {
        "fsx_id": ("fsx_type", "fsx_gib", "fsx_mbps_per_tib"),
        "efs_id": ("efs_mibps",),
    }.items():
        asked = [flag for flag in ours if flag in settings.model_fields_set]
        if getattr(settings, own) and asked:
            yield Contradiction(
                problem=f"{' and '.join(asked)} {'is' if len(asked) == 1 else 'are'} for a new file system, "
                f"and {own}={getattr(settings, own)} is there already",
                mend=f"leave {' and '.join(asked)} out",
            )
    if settings.fsx_type == "scratch2" and "fsx_mbps_per_tib" in settings.model_fields_set:
        yield Contradiction(
            problem="fsx_mbps_per_tib is for persistent2; scratch2 has 200 MB/s a TiB",
            mend="leave fsx_mbps_per_tib out",
        )


def _addresses_suffice(settings: Settings) -> Iterator[Contradiction]:
    if settings.vpc_id:
        return  # trainctl preflight asks EC2
    cards, base = settings.size.network_cards, load_base()
    free = PRIVATE_ADDRESSES - RESERVED_ADDRESSES - (base.cpu_queue.nodes if settings.cpu_queue_type else 0)
    if settings.nodes * cards > free:
        yield Contradiction(
            problem=f"nodes={settings.nodes}: {settings.compute_type} takes {cards} addresses a node, and "
            f"the private subnet (/17) has {free} for them",
            mend=f"-c nodes={free // cards}",
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


_RULES: tuple[Rule, ...] = (
    _least_is_not_above_most,
    _capacity_is_sold,
    _capacity_block_always_runs,
    _capacity_block_has_no_group,
    _placement_group_is_a_name,
    _family_is_supported,
    _image_runs_on_the_family,
    _cpu_queue_stands_beside_accelerators,
    _accounting_is_complete,
    _own_network_is_complete,
    _own_network_is_left_alone,
    _the_world_stays_out,
    _given_storage_is_left_alone,
    _addresses_suffice,
    _head_node_has_the_memory,
)
