"""The subcommand `trainctl jobs`."""

from typing import Annotated

import typer

from ops.options import Cluster, Json, print_json


def jobs(
    ended: Annotated[bool, typer.Option("--all", help="Also list ended jobs.")] = False,
    *,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """List running and waiting jobs, and why jobs wait."""
    from ops.account.head_node import find_head_node
    from ops.account.region_and_profile import with_account
    from ops.account.session import account_clients
    from ops.jobs.listing import render_jobs
    from ops.jobs.lookup import read_jobs

    found = read_jobs(find_head_node(cluster, account_clients()), ended=ended)
    if as_json:
        return print_json(found)
    lines = render_jobs(found, ended=ended, cluster_name=cluster)
    return typer.echo(with_account("\n".join(lines)))
