"""Prints a plan for people."""

from collections.abc import Iterator
from itertools import groupby

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops.account.region_and_profile import with_account
from ops.options import print_table
from ops.plan.change import REFUSED, Change
from ops.plan.plan import Plan
from ops.plan.resources import ResourceChange
from ops.price.quote import Quote

_STYLES = {"live": "green", "rolling": "yellow", "fleet stops": "yellow"}
_JOBS_SHOWN = 10


def show_plan(plan: Plan, console: Console) -> None:
    """Print the plan, with the refused changes last."""
    console.print(Text(_headline(plan)))
    if plan.changes:
        print_table(_table(plan.changes), console)
    for lines in (_jobs(plan), _costs(plan), _resources(plan), _notes(plan), _refused(plan)):
        for line in lines:
            console.print(Text(with_account(line)))


def _headline(plan: Plan) -> str:
    name = f"{plan.cluster_name} in {plan.region}"
    if plan.state == "new":
        return f"{name}: the cluster does not exist yet; a deploy takes about {plan.minutes} minutes."
    if plan.state == "replaced":
        return (
            f"{name}: the creation of this cluster failed; a deploy replaces it, in about {plan.minutes} "
            "minutes."
        )
    if plan.state == "foreign":
        return f"{name}: another stack created this cluster."
    if not plan.changes:
        return f"{name}: the cluster agrees with these flags."
    return f"{name}: a deploy with these flags changes"


def _table(changes: tuple[Change, ...]) -> Table:
    table = Table("", "now", "then", "how", "", box=box.SIMPLE_HEAD, pad_edge=False)
    for each in changes:
        style = _STYLES.get(each.verdict, "bold red")
        row = (Text(each.what), Text(each.old), Text(each.new), Text(each.verdict, style=style))
        table.add_row(*row, Text("" if each.verdict in REFUSED else each.why))
    return table


def _jobs(plan: Plan) -> Iterator[str]:
    if plan.running is None:
        return
    jobs, nodes = plan.running.jobs, plan.running.nodes
    verdicts = {each.verdict for each in plan.changes}
    if jobs is None:
        yield f"Jobs: not known ({plan.running.why_no_jobs}); {nodes} compute node(s) run."
        return
    fate = "continue"
    if verdicts & {*REFUSED}:
        fate = "continue, since the deploy would fail"
    elif "fleet stops" in verdicts:
        fate = "end"
    elif "rolling" in verdicts:
        fate = "finish first"
    yield f"Jobs: {f'{len(jobs)} run, and {fate}:' if jobs else 'none runs'}" + (
        f"  ({nodes} compute node(s))" if nodes else ""
    )
    for job in jobs[:_JOBS_SHOWN]:
        yield f"  {job.id} {job.name} ({job.user}, {job.nodes} node(s), {job.time})"
    if len(jobs) > _JOBS_SHOWN:
        yield f"  and {len(jobs) - _JOBS_SHOWN} more"


def _costs(plan: Plan) -> Iterator[str]:
    after, before = plan.cost_after, plan.cost_before
    idle, full = f"{after.idle_usd_per_month:,.0f}", f"{after.full_usd_per_hour:,.2f}"
    if before:
        idle, full = (
            f"{before.idle_usd_per_month:,.0f} -> {idle}",
            f"{before.full_usd_per_hour:,.2f} -> {full}",
        )
    yield f"Cost: idle {idle} USD a month; all nodes {full} USD an hour{_without(after)} (trainctl price)."
    if plan.why_no_before:
        yield f"The former cost is unknown: {plan.why_no_before}."
    if after.why_catalog:
        yield f"Instance prices are the catalog's: {after.why_catalog}."


def _without(quote: Quote) -> str:
    return f", without {', '.join(row.what for row in quote.unknown)}" if quote.unknown else ""


def _resources(plan: Plan) -> Iterator[str]:
    if plan.resources is None:
        return
    if not plan.resources:
        yield "CloudFormation resources: none changes (cdk diff)."
    for stack, group in groupby(plan.resources, key=lambda each: each.stack):
        changes = list(group)
        yield f"{stack}, by cdk diff:"
        if all(each.kind == "added" for each in changes) and len(changes) > _JOBS_SHOWN:
            yield f"  {len(changes)} resources added"
        else:
            yield from map(_resource, changes)


def _resource(change: ResourceChange) -> str:
    return f"  {change.kind:16}  {change.type}  {change.name}"


def _notes(plan: Plan) -> Iterator[str]:
    if plan.not_judged:
        first = ", ".join(plan.not_judged)
        yield f"ParallelCluster's validators were not asked: the deploy makes {first} first."
    if plan.minutes is not None:
        yield "The minutes are an estimate; this app has not run on AWS yet."


def _refused(plan: Plan) -> Iterator[str]:
    for each in plan.refused:
        yield ""
        values = "" if each.old == each.new else f" {each.old} -> {each.new}"
        yield f"{each.verdict}: {each.what}{values}: {each.why}."
        if each.mend:
            yield f"  type:   {each.mend.rstrip('.')}"
    if plan.refused:
        yield f"{len(plan.refused)} change(s) are refused: the deploy would fail."
