"""The subcommand `trainctl status`."""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Annotated

import typer

from ops.options import Cluster, Json, console, print_json

if TYPE_CHECKING:
    from rich.text import Text

    from ops.account.session import ClientOf
    from ops.status.cluster import ClusterState
    from ops.status.deploy import Status

_POLL_S, _QUIET_LOOKS = 5.0, 4


def status(
    cluster: Cluster,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until nothing changes.")] = False,
    as_json: Json = False,
) -> None:
    """Show the state of a deploy and of its cluster: head node, fleet, nodes, jobs, storage.

    The exit code is 1 if there is neither the cluster nor a deploy in progress. Between two stacks of a first
    deploy it is 0: all stacks here are intact, and there is no other cluster.
    """
    from ops.account.session import account_clients
    from ops.status.deploy import read_status

    if watch and as_json:
        raise typer.BadParameter("--watch prints continuously, --json once: give one of them.")
    client = account_clients()
    if watch:
        return _watch(cluster, client)
    found = read_status(cluster, client)
    if as_json:
        print_json({**vars(found), "cluster": _cluster_state(found, client)})
    else:
        terminal = console()
        terminal.print(_shown(found))
        if state := _cluster_state(found, client):
            terminal.print()
            terminal.print(_shown(None, state))
    raise typer.Exit(0 if found.has_cluster or found.is_moving or found.awaits_cluster else 1)


def _watch(cluster: str, client: ClientOf) -> None:
    from botocore.exceptions import BotoCoreError, ClientError
    from rich.live import Live
    from rich.text import Text

    from ops.account.aws_errors import explain
    from ops.account.region_and_profile import with_account
    from ops.status.deploy import read_status

    found = read_status(cluster, client)
    with Live(_shown(found, _cluster_state(found, client)), console=console(), auto_refresh=False) as live:
        quiet = 0
        while quiet < _QUIET_LOOKS:  # between two stacks nothing changes for a while
            time.sleep(_POLL_S)
            try:
                found = read_status(cluster, client)
                state = _cluster_state(found, client)
            except (BotoCoreError, ClientError) as error:
                quiet = 0
                live.update(Text(with_account(f"No answer: {explain(error)}")), refresh=True)
                continue
            quiet = 0 if found.is_moving else quiet + 1
            live.update(_shown(found, state), refresh=True)


def _cluster_state(found: Status, client: ClientOf) -> ClusterState | None:
    from ops.status.cluster import read_deployed

    return read_deployed(found.cluster_name, client) if found.has_cluster else None


def _shown(found: Status | None, state: ClusterState | None = None) -> Text:
    from rich.text import Text

    from ops.account.region_and_profile import with_account
    from ops.status.cluster import render_cluster_state
    from ops.status.deploy import render

    deploy = [*render(found, datetime.datetime.now(datetime.UTC))] if found else []
    cluster = [*render_cluster_state(state)] if state else []
    return Text(with_account("\n".join([*deploy, *([""] if deploy and cluster else []), *cluster])))
