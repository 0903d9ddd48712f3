"""The subcommand `trainctl logs`."""

from typing import Annotated

import typer

from ops.options import Cluster, Json, print_json


def logs(
    job: Annotated[str, typer.Argument(metavar="JOB", help="Id of a job, as trainctl jobs lists it.")],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new output until the job has ended.")
    ] = False,
    lines: Annotated[
        int,
        typer.Option("--lines", "-n", metavar="N", min=0, help="Number of lines from the end. 0 shows all."),
    ] = 100,
    *,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Show the output of a job.

    With --follow, the exit code is 1 if the job fails. Ctrl-C ends the command, not the job.
    """
    from ops.account.head_node import find_head_node
    from ops.account.region_and_profile import with_account
    from ops.account.session import account_clients
    from ops.jobs.follow import find_log, show_tail, state_line
    from ops.jobs.lookup import cluster_option
    from ops.jobs.slurm import check_job_id
    from ops.jobs.watch import watch

    if follow and as_json:
        raise typer.BadParameter("--follow prints continuously, --json once: give one of them.")
    job = check_job_id(job)
    head_node = find_head_node(cluster, account_clients())
    if follow:
        raise typer.Exit(watch(job, head_node, lines=lines))
    log = find_log(job, head_node)
    if as_json:
        texts = list[str]()
        show_tail(log, lines, texts.append)
        return print_json({"job": log.job, "output": log.output.path, "text": "".join(texts)})
    show_tail(log, lines, lambda text: typer.echo(text, nl=False))
    if log.job and not log.job.has_ended:
        follow_command = with_account(f"trainctl logs {job} --follow{cluster_option(cluster)}")
        typer.echo(f"{state_line(log.job)}. To follow it: {follow_command}", err=True)
    elif log.job:
        typer.echo(f"Job {job} ended: {log.job.ending}", err=True)
    return None
