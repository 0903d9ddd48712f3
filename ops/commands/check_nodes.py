"""The subcommand `trainctl check-nodes`."""

from typing import Annotated

import typer

from ops.options import Cluster, Json, Partition, print_json


def check_nodes(
    nodes: Annotated[
        str | None,
        typer.Argument(metavar="NODES", help="Such as gpu-dy-p4d-[1-8]. Default: all running idle nodes."),
    ] = None,
    *,
    partition: Partition = None,
    drain: Annotated[bool, typer.Option("--drain", help="Drain bad nodes, and confirm each first.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --drain: do not ask for confirmation.")] = False,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Run a job that measures nodes alone and in pairs, and list slow and broken nodes.

    The exit code is 1 if a node is bad, or could not be judged.
    """
    from ops.account.head_node import find_head_node
    from ops.account.region_and_profile import with_account
    from ops.account.session import account_clients
    from ops.jobs import check_nodes as sweeping
    from ops.jobs.lookup import cluster_option
    from ops.jobs.watch import INTERRUPTED, watch

    if yes and not drain:
        raise typer.BadParameter("--yes requires --drain: give both.")
    if drain and as_json and not yes:
        raise typer.BadParameter("--json asks no questions: give --yes, too.")
    if nodes is not None:
        sweeping.check_names(nodes)
    head_node = find_head_node(cluster, account_clients())
    sweep = sweeping.start_sweep(nodes, partition, head_node)
    job, where = sweep.submitted.job_id, cluster_option(cluster)
    for note in (f"Job {job} sweeps {len(sweep.nodes)} node(s)", *sweep.submitted.notes):
        typer.echo(note, err=True)
    if watch(job, head_node, lines=0, quiet=as_json) == INTERRUPTED:
        typer.echo(with_account(f"Its table will be in trainctl logs {job}{where}"), err=True)
        raise typer.Exit(INTERRUPTED)
    swept = sweeping.read_sweep(sweep, head_node)
    drained: dict[str, str] = {}
    for line in () if as_json else sweeping.sentences(swept):
        typer.echo(line)
    for each in swept.sick if drain else ():
        if each.reason and (yes or typer.confirm(f"Drain {each.node} ({each.reason})?")):
            drained[each.node] = sweeping.drain(each, head_node)
            typer.echo(f"{each.node}: {drained[each.node]}", err=as_json)
    if as_json:
        print_json({"swept": swept, "drained": drained})
    elif any(each.reason for each in swept.sick) and not drain:
        typer.echo(with_account(f"  trainctl check-nodes --drain{where}    measures again, and drains them"))
    raise typer.Exit(1 if swept.sick else 0)
