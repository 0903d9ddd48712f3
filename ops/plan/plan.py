"""Makes the plan: the changes between the deployed state and the flags, and their cost."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ops.account.session import ClientOf
from ops.asset_code import asset_code
from ops.pcluster.dry_run import DryRun
from ops.pcluster.update_policies import Judge
from ops.plan.change import REFUSED, Change
from ops.plan.cluster import cluster_changes
from ops.plan.deployed import Deployed, read_deployed
from ops.plan.flags import former_settings
from ops.plan.foundations import foundation_changes
from ops.plan.jobs import Running, read_running
from ops.plan.resources import ResourceChange
from ops.price.price_book import PriceBook
from ops.price.quote import Quote, make_quote
from training_cluster.catalog.families import load_base
from training_cluster.cluster.nodes import Rendered
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import checked_config, config_before_deploy
from training_cluster.stack_names import STORAGE_STACK

State = Literal["new", "update", "replaced", "foreign"]


DryRunOf = Callable[[str, Mapping[str, Any]], DryRun]
PricesOf = Callable[[list[Rendered]], PriceBook]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Changes that one deploy would make."""

    cluster_name: str
    region: str
    state: State
    """new: no cluster exists; replaced: its creation failed; foreign: another stack created it."""
    changes: tuple[Change, ...]
    running: Running | None
    """Running nodes and jobs; None without a cluster."""
    cost_before: Quote | None
    cost_after: Quote
    why_no_before: str
    """Reason why the former cost is unknown."""
    minutes: int | None
    """Expected duration of a first deploy; None for an update."""
    not_judged: tuple[str, ...]
    """Resources that the deploy creates first, and without which the validators could not be asked."""
    resources: tuple[ResourceChange, ...] | None = None
    """Changes of resources; None if the CDK was not asked."""

    @property
    def refused(self) -> tuple[Change, ...]:
        """Changes for which the deploy would fail."""
        return tuple(each for each in self.changes if each.verdict in REFUSED)


def read_plan(
    settings: Settings, client: ClientOf, *, judge: Judge, prices: PricesOf, dry_run: DryRunOf | None
) -> Plan:
    """Make the plan from the account and the library, without changing anything.

    Args:
        judge: returns the library's update policies.
        dry_run: runs the library's validators; None to skip them.

    Raises:
        ConfigurationError: a deploy would refuse the config.
        OpsError: the library is not installed, or does not answer.
        botocore's errors.
    """
    config, deployed = checked_config(settings), read_deployed(settings, client)
    state, changes = _state(deployed), list(foundation_changes(settings, deployed))
    before, why = former_settings(settings, deployed) if state != "foreign" else (None, "")
    changes += _renamed(settings, deployed)
    running, not_judged = None, tuple[str, ...]()
    if state == "foreign":
        changes.append(_foreign(settings, deployed))
    elif state == "update":
        running = read_running(settings.cluster_name, client)
        found = cluster_changes(
            before, settings, deployed=deployed, busy=running.is_busy, judge=judge, client=client
        )
        changes = _merged(changes, found.changes)
        not_judged = found.rendered.not_created
        is_possible = all(each.verdict != "impossible" for each in changes)
        if dry_run and found.is_changed and not not_judged and is_possible:
            changes += _validated(dry_run(settings.cluster_name, found.rendered.config))
    # The former files are not recorded: the deployed config has what they rendered.
    priced = before or (former_settings(settings, deployed, with_files=False)[0] if why else None)
    # Former flags with today's files, if nothing was created, may be what a deploy refuses.
    before_config = dict(deployed.config or config_before_deploy(priced)) if priced else {}
    book = prices([*([before_config] if priced else []), config])
    return Plan(
        cluster_name=settings.cluster_name,
        region=deployed.region,
        state=state,
        changes=tuple(changes),
        running=running,
        cost_before=make_quote(priced, book, before_config) if priced else None,
        cost_after=make_quote(settings, book, config),
        why_no_before="" if priced else why,
        minutes=None if state == "update" else _minutes(settings, deployed),
        not_judged=not_judged,
    )


def _state(deployed: Deployed) -> State:
    if deployed.is_foreign:
        return "foreign"
    if deployed.pcluster_status is None:
        return "new"
    return "replaced" if deployed.creation_failed else "update"


def _foreign(settings: Settings, deployed: Deployed) -> Change:
    name = settings.cluster_name
    return Change(
        what="cluster_name",
        old=name,
        new=name,
        verdict="impossible",
        why=f"a stack {name} exists ({deployed.pcluster_status}), not created by {settings.stack_name}",
        mend=f"{asset_code('guard', 'names').names.another(name)}, with the same flags",
    )


def _renamed(settings: Settings, deployed: Deployed) -> Iterator[Change]:
    """Refuse another name for the cluster of the stack, like the guard."""
    names, new = asset_code("guard", "names").names, settings.cluster_name
    old = names.cluster_in(deployed.cluster_stack.template) if deployed.cluster_stack else None
    if old and old != new:
        why, _, mend = names.kept(settings.stack_name, old).partition(". Type: ")
        yield Change(what="cluster_name", old=old, new=new, verdict="impossible", why=why, mend=mend)


def _merged(shared: Iterable[Change], own: Iterable[Change]) -> list[Change]:
    """Merge the changes of storage and cluster, which may be of the same flag; a refusal takes precedence."""
    found = {each.what: each for each in shared}
    for each in own:
        if each.what not in found or (each.verdict in REFUSED and found[each.what].verdict not in REFUSED):
            found[each.what] = each
    return list(found.values())


def _validated(answer: DryRun) -> list[Change]:
    """Return each error of the validators as an impossible change."""
    said = [(each.validator, each.text) for each in answer.errors]
    if answer.refusal:
        said.append(("ParallelCluster", answer.refusal))
    return [Change(what=who, old="-", new="-", verdict="impossible", why=text) for who, text in said]


# Estimates of docs/rehearsal.md, never measured: 10 minutes for Lustre, up to 20 for the head node.
_LUSTRE_MIN, _HEAD_NODE_MIN = 10, 20


def _minutes(settings: Settings, deployed: Deployed) -> int:
    lustre = 0 if settings.fsx_id or STORAGE_STACK in deployed.stacks else _LUSTRE_MIN
    recipe = load_base().image_recipes[settings.family_facts.image_recipe]
    return lustre + _HEAD_NODE_MIN + (recipe.usual_min if settings.node_image == "build" else 0)
