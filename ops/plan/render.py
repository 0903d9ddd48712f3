"""What a person sees of a plan."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ops.account.options import with_account
from ops.plan.change import REFUSED, Change
from ops.plan.plan import Plan
from ops.plan.resources import ResourceChange
from ops.price.quote import Quote

_STYLES = {"live": "green", "rolling": "yellow", "fleet stops": "yellow"}
_JOBS_SHOWN = 10


def show_plan(plan: Plan, console: Console) -> None:
    """Print it all, what is refused last."""
    console.print(Text(_headline(plan)))
    if plan.changes:
        console.print(_table(plan.changes))
    for lines in (_jobs(plan), _costs(plan), _resources(plan), _notes(plan), _refused(plan)):
        for line in lines:
            console.print(Text(with_account(line)))


def _headline(plan: Plan) -> str:
    name = f"{plan.cluster_name} in {plan.region}"
    if plan.state == "new":
        return f"{name}: there is no such cluster, so all of it is new: about {plan.minutes} minutes."
    if plan.state == "replaced":
        return (
            f"{name}: what is there failed while it was made; the deploy replaces it by a new cluster: about "
            f"{plan.minutes} minutes."
        )
    if plan.state == "foreign":
        return f"{name}: that cluster is somebody else's."
    if not plan.changes:
        return f"{name}: the cluster is as these flags say."
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
    fate = "go on"
    if verdicts & {*REFUSED}:
        fate = "go on, since the deploy would fail"
    elif "fleet stops" in verdicts:
        fate = "end"
    elif "rolling" in verdicts:
        fate = "end first"
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
        yield f"What it cost before is not told: {plan.why_no_before}."
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
        if each.way:
            yield f"  type:   {each.way.rstrip('.')}"
    if plan.refused:
        yield f"{len(plan.refused)} change(s) are refused: the deploy would fail."
