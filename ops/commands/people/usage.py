"""The subcommand `trainctl usage`."""

from typing import Annotated, Literal

import typer

from ops.options import Cluster, Json, print_json


def usage(
    *,
    by: Annotated[Literal["user", "account", "week"], typer.Option(help="Group the sums by this.")] = "user",
    since: Annotated[
        str | None, typer.Option(metavar="DATE", help="First day, such as 2026-11-01. Default: 30 days ago.")
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Day after the last day. Default: now.")
    ] = None,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Show node hours, GPU hours and cost by user, account or week, from Slurm's accounting."""
    import datetime

    from ops.account.head_node import find_head_node
    from ops.account.session import account_clients
    from ops.users.usage import read_usage, render_usage

    # Slurm compares with local time of the head node, which is UTC.
    now = datetime.datetime.now(datetime.UTC)
    first = _date("--since", since) or f"{now - datetime.timedelta(days=30):%Y-%m-%d}"
    last = _date("--until", until) or f"{now:%Y-%m-%dT%H:%M:%S}"
    if first >= last:
        raise typer.BadParameter(f"--since {first} is not before --until {last}.")
    found = read_usage(find_head_node(cluster, account_clients()), by=by, since=first, until=last)
    if as_json:
        return print_json({"by": by, "since": first, "until": last, "usage": found})
    return typer.echo(render_usage(found, by=by, since=first, until=last, cluster_name=cluster))


def _date(option: str, given: str | None) -> str | None:
    import datetime

    if given is None:
        return None
    try:
        return f"{datetime.date.fromisoformat(given):%Y-%m-%d}"
    except ValueError:
        raise typer.BadParameter(f'{option} "{given}" is not a date: type {option} 2026-11-01') from None
