"""The subcommand `trainctl submit`."""

import shlex
from typing import Annotated

import typer

from ops.jobs.variables import variables_of_jobs
from ops.options import Cluster, Follow, Json, Partition, print_json


def submit(
    workload: Annotated[
        str, typer.Argument(metavar="WORKLOAD", help="Folder in /fsx/training that contains train.sh.")
    ],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="ARGUMENT", help="Arguments for the workload, after --.")
    ] = None,
    *,
    nodes: Annotated[
        str,
        typer.Option(
            "--nodes",
            "-N",
            metavar="N|MIN-MAX",
            help="Number of nodes that train, or the fewest and the most: the job starts on what is free.",
        ),
    ],
    spares: Annotated[
        int | None,
        typer.Option(metavar="N", min=0, help="Number of further nodes, which replace lost ones."),
    ] = None,
    partition: Partition = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Setting of the workload, as its README lists them, or of every job: "
            f"{', '.join(each.name for each in variables_of_jobs())}. Can be repeated.",
        ),
    ] = None,
    variables: Annotated[
        list[str] | None,
        typer.Option(
            "--env",
            metavar="KEY=VALUE",
            help="Environment variable for the job, not checked; a secret as file:PATH or secret:NAME. "
            "Can be repeated.",
        ),
    ] = None,
    after: Annotated[
        str | None, typer.Option(metavar="JOB", help="Start after this job has succeeded.")
    ] = None,
    container: Annotated[
        str | None, typer.Option(metavar="IMAGE", help="Container image: in a registry, or a .sqsh file.")
    ] = None,
    name: Annotated[
        str | None, typer.Option(metavar="RUN", help="Name of the run. An existing run continues.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="LIMIT", help="Time limit: minutes, or [days-]hours:minutes:seconds."),
    ] = None,
    notify: Annotated[
        str | None,
        typer.Option(
            metavar="webhook|mail",
            help="Send a message at start, requeue and end (docs/how-to/health.md).",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check everything, and print the sbatch command; submit nothing."),
    ] = False,
    follow: Follow = False,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Check the settings of a training job, and submit it to Slurm."""
    from ops.account.head_node import find_head_node
    from ops.account.region_and_profile import with_account
    from ops.account.session import account_clients
    from ops.jobs.hub import check_weights
    from ops.jobs.lookup import cluster_option
    from ops.jobs.request import JobRequest, read_nodes, read_settings, sbatch_command
    from ops.jobs.secrets import refuse_secret_arguments
    from ops.jobs.settings import check_job_settings
    from ops.jobs.slurm import check_job_id, check_time_limit
    from ops.jobs.submit import check
    from ops.jobs.submit import submit as submit_job
    from ops.jobs.watch import watch

    if follow and as_json:
        raise typer.BadParameter("--follow prints continuously, --json once: give one of them.")
    if follow and dry_run:
        raise typer.BadParameter("--dry-run submits nothing to --follow: give one of them.")
    if notify not in (None, "webhook", "mail"):
        # The value is not shown: it may be the address, which is a secret.
        raise typer.BadParameter(
            "--notify takes the word webhook or mail. A webhook's address is a secret, and belongs in the "
            "file ~/.training-cluster/webhook on the cluster (chmod 600); addresses of mail are those of the "
            "flag job_emails."
        )
    given = [*(settings or []), *([f"NOTIFY={notify}"] if notify else [])]
    most, fewest = read_nodes(nodes)
    if spares:
        fewest = fewest or most  # a job that Slurm queued again starts without a spare, too
    refuse_secret_arguments(arguments or [])
    checked = read_settings(given, run=name, container=container, spares=spares, fewest=fewest)
    if note := check_job_settings(workload, checked, arguments or []):
        typer.echo(note, err=True)
    others = read_settings(variables or [], run=None, option="--env")
    if note := check_weights(workload, checked, others):
        typer.echo(note, err=True)
    request = JobRequest(
        workload=workload,
        nodes=most,
        partition=partition,
        settings={**others, **checked},
        arguments=arguments or [],
        after=check_job_id(after) if after else None,
        time_limit=None if time is None else check_time_limit(time),
    )
    head_node = find_head_node(cluster, account_clients())
    if dry_run:
        notes, command = check(request, head_node), shlex.join(sbatch_command(request))
        if as_json:
            return print_json({"command": command, "notes": notes})
        for note in notes:
            typer.echo(note, err=True)
        return typer.echo(command)
    submitted = submit_job(request, head_node)
    if as_json:
        return print_json(submitted)
    job, where = submitted.job_id, cluster_option(cluster)
    spare = f", {request.spares} more as spares" if request.spares else ""
    typer.echo(f"Job {job}: {workload} on {nodes} node(s){spare}")
    for note in submitted.notes:
        typer.echo(note)
    if follow:
        raise typer.Exit(watch(job, head_node, lines=0))
    next_steps = (
        f"  trainctl logs {job} --follow{where}     shows its output as it grows\n"
        f"  trainctl jobs{where}                    shows the queue, and why it waits\n"
        f"  trainctl cancel {job}{where}            ends it\n"
        f"  trainctl report {job}{where}            shows loss, speed and restarts"
    )
    return typer.echo(with_account(next_steps))
