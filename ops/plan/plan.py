"""The plan: what stands, what is asked for, and what lies between."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ops.account.session import ClientOf
from ops.pcluster.dry_run import DryRun
from ops.plan.change import REFUSED, Change, second_cluster
from ops.plan.cluster import cluster_changes
from ops.plan.deployed import Deployed, read_deployed
from ops.plan.flags import former_settings
from ops.plan.foundations import foundation_changes
from ops.plan.jobs import Running, read_running
from ops.plan.policies import Judge
from ops.plan.resources import ResourceChange
from ops.price.book import PriceBook
from ops.price.quote import Quote, make_quote
from training_cluster.catalog.families import load_base
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import STORAGE_STACK

State = Literal["new", "update", "replaced", "foreign"]


DryRunOf = Callable[[str, Mapping[str, Any]], DryRun]
PricesOf = Callable[[list[Settings]], PriceBook]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All there is to say."""

    cluster_name: str
    region: str
    state: State
    """new: there is no cluster; replaced: one that failed while it was made; foreign: somebody else's."""
    changes: tuple[Change, ...]
    running: Running | None
    """None where no cluster stands."""
    cost_before: Quote | None
    cost_after: Quote
    why_no_before: str
    """Why the former cost, and flags, are not told."""
    minutes: int | None
    """What a first deploy is expected to take; None for an update."""
    not_judged: tuple[str, ...]
    """What the deploy makes first, without which the validators were not asked."""
    resources: tuple[ResourceChange, ...] | None = None
    """None: the CDK was not asked."""

    @property
    def refused(self) -> tuple[Change, ...]:
        """Changes for which the deploy would fail, now or ever."""
        return tuple(each for each in self.changes if each.verdict in REFUSED)


def read_plan(
    settings: Settings, client: ClientOf, *, judge: Judge, prices: PricesOf, dry_run: DryRunOf | None
) -> Plan:
    """Ask the account and the library; changes nothing.

    Args:
        judge: asks the library's update policies.
        dry_run: asks its validators; None not to.

    Raises:
        OpsError: the library is not there, or does not answer.
        botocore's errors.
    """
    deployed = read_deployed(settings, client)
    state, changes = _state(deployed), list(foundation_changes(settings, deployed))
    before, why = former_settings(settings, deployed) if state != "foreign" else (None, "")
    running, not_judged = None, tuple[str, ...]()
    if state == "foreign":
        changes.append(_foreign(settings, deployed))
    elif state == "update":
        running = read_running(settings.cluster_name, client)
        found = cluster_changes(
            before, settings, deployed=deployed, busy=running.is_busy, judge=judge, client=client
        )
        changes = _merged(changes, found.changes)
        not_judged = found.rendered.not_there
        if dry_run and found.is_changed and not not_judged and not _is_impossible(changes):
            changes += _validated(dry_run(settings.cluster_name, found.rendered.config))
    book = prices([settings] if before is None else [before, settings])
    return Plan(
        cluster_name=settings.cluster_name,
        region=deployed.region,
        state=state,
        changes=tuple(changes),
        running=running,
        cost_before=make_quote(before, book) if before else None,
        cost_after=make_quote(settings, book),
        why_no_before=why,
        minutes=None if state == "update" else _minutes(settings, deployed),
        not_judged=not_judged,
    )


def _state(deployed: Deployed) -> State:
    if deployed.is_foreign:
        return "foreign"
    if deployed.pcluster_status is None:
        return "new"
    return "replaced" if deployed.never_stood else "update"


def _foreign(settings: Settings, deployed: Deployed) -> Change:
    name = settings.cluster_name
    return Change(
        what="cluster_name",
        old=name,
        new=name,
        verdict="impossible",
        why=f"a stack {name} is there ({deployed.pcluster_status}) that {settings.stack_name} did not make",
        way=second_cluster(name),
    )


def _merged(shared: Iterable[Change], own: Iterable[Change]) -> list[Change]:
    """A flag of the storage may be one of the cluster, too: what is refused by either is told."""
    found = {each.what: each for each in shared}
    for each in own:
        if each.what not in found or (each.verdict in REFUSED and found[each.what].verdict not in REFUSED):
            found[each.what] = each
    return list(found.values())


def _is_impossible(changes: Iterable[Change]) -> bool:
    return any(each.verdict == "impossible" for each in changes)


def _validated(answer: DryRun) -> list[Change]:
    """Errors of the validators, each as something that cannot be."""
    said = [(each.validator, each.text) for each in answer.errors]
    if answer.refusal:
        said.append(("ParallelCluster", answer.refusal))
    return [Change(what=who, old="-", new="-", verdict="impossible", why=text) for who, text in said]


# As docs/rehearsal.md expects it of AWS: 10 minutes for Lustre, up to 20 for the head node. Never measured.
_LUSTRE_MIN, _HEAD_NODE_MIN = 10, 20


def _minutes(settings: Settings, deployed: Deployed) -> int:
    lustre = 0 if settings.fsx_id or STORAGE_STACK in deployed.stacks else _LUSTRE_MIN
    recipe = load_base().image_recipes[settings.family_facts.image_recipe]
    return lustre + _HEAD_NODE_MIN + (recipe.usual_min if settings.node_image == "build" else 0)
