"""The subcommand `trainctl cancel`."""

from typing import Annotated

import typer

from ops.options import Cluster, Json, print_json


def cancel(
    jobs: Annotated[
        list[str], typer.Argument(metavar="JOB", help="Ids of the jobs, as trainctl jobs lists them.")
    ],
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Cancel jobs. A training job saves a checkpoint first.

    The exit code is 1 if a job could not be cancelled.
    """
    from ops.account.head_node import find_head_node
    from ops.account.region_and_profile import with_account
    from ops.account.session import account_clients
    from ops.jobs.cancel import cancel as cancel_job
    from ops.jobs.slurm import check_job_id

    wanted = [check_job_id(job) for job in jobs]
    head_node = find_head_node(cluster, account_clients())
    done = [cancel_job(job, head_node) for job in wanted]
    if as_json:
        print_json({"jobs": done})
    for each in () if as_json else done:
        typer.echo(with_account(each.said), err=not each.done)
        if each.resume_command:
            typer.echo("  The end of its output has the command that continues it; for a run without a name:")
            typer.echo(f"  {each.resume_command}")
    raise typer.Exit(0 if all(each.done for each in done) else 1)
