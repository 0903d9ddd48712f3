"""The subcommand `trainctl export`."""

from typing import Annotated

import typer

from ops.options import Cluster, Follow, Json, Partition, print_json


def export(
    run: Annotated[str, typer.Argument(metavar="RUN", help="Job id, run name or WORKLOAD/RUN.")],
    *,
    checkpoint: Annotated[
        int | None, typer.Option(metavar="STEP", min=1, help="Step of the checkpoint. Default: the newest.")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(metavar="FOLDER", help="New folder on the cluster. Default: in the run's folder."),
    ] = None,
    nodes: Annotated[
        int,
        typer.Option(
            "--nodes", "-N", metavar="N", min=1, help="Number of nodes, which together hold the weights."
        ),
    ] = 1,
    partition: Partition = None,
    follow: Follow = False,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Run a job that exports the weights of a run's checkpoint to Hugging Face's format."""
    from ops.account.head_node import find_head_node
    from ops.account.region_and_profile import with_account
    from ops.account.session import account_clients
    from ops.jobs.export import export as submit_export
    from ops.jobs.lookup import cluster_option
    from ops.jobs.watch import watch

    if follow and as_json:
        raise typer.BadParameter("--follow prints continuously, --json once: give one of them.")
    head_node = find_head_node(cluster, account_clients())
    found = submit_export(run, head_node, step=checkpoint, to=out, nodes=nodes, partition=partition)
    if as_json:
        return print_json(found)
    job, where = found.submitted.job_id, cluster_option(cluster)
    typer.echo(f"Job {job}: weights of {found.run} at step {found.step}, into {found.to}")
    for note in found.submitted.notes:
        typer.echo(note)
    if follow:
        raise typer.Exit(watch(job, head_node, lines=0))
    return typer.echo(with_account(f"  trainctl logs {job} --follow{where}     shows its output as it grows"))
