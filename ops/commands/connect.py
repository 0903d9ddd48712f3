"""The subcommand `trainctl connect`."""

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from ops.options import Cluster, Json, print_json


def connect(
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="COMMAND", help="Command to run on the head node, after --. Default: a shell."
        ),
    ] = None,
    *,
    ssh: Annotated[
        bool, typer.Option("--ssh", help="Use SSH. Requires a deploy with -c ssh_from=...")
    ] = False,
    key: Annotated[Path | None, typer.Option("-i", metavar="KEY", help="Private key for --ssh.")] = None,
    only_print: Annotated[
        bool, typer.Option("--print", help="Print the command instead of running it.")
    ] = False,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Open a shell on the head node, or run one command there as the cluster's user.

    A command gets no input, can run for at most 90 seconds, and returns at most 24,000 characters of output.
    """
    from ops.account.head_node import MAX_OUTPUT_BYTES, find_head_node
    from ops.account.region_and_profile import with_account
    from ops.account.session import account_clients
    from ops.connect import found, session_command, ssh_command

    if command and (ssh or key or only_print):
        raise typer.BadParameter("--ssh, -i and --print are for a shell: remove them, or the command.")
    if key and not ssh:
        raise typer.BadParameter("-i is for --ssh.")
    client = account_clients()
    if command:
        said = find_head_node(cluster, client).run(*command)
        if as_json:
            return print_json({"command": command, "output": said})
        typer.echo(said, nl=False)
        if len(said.encode()) >= MAX_OUTPUT_BYTES:
            typer.echo("\nThe output is cut off here, because Systems Manager returns no more.", err=True)
        return None
    argv = ssh_command(cluster, client, key=key) if ssh else session_command(cluster, client)
    argv = shlex.split(with_account(shlex.join(argv)))
    if as_json:
        return print_json({"command": argv})
    if not only_print:
        argv = found(argv)
        os.execv(argv[0], argv)  # noqa: S606 - no shell is meant
    return typer.echo(shlex.join(argv))
