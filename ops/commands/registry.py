"""The subcommand `trainctl registry`."""

import shlex
from typing import Annotated

import typer

from ops.options import Cluster, Json, print_json


def registry(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="login, logout or list.")],
    host: Annotated[
        str | None,
        typer.Argument(metavar="HOST", help="Host name of the registry, such as nvcr.io or docker.io."),
    ] = None,
    *,
    user: Annotated[
        str | None, typer.Option(help="User name at the registry. Not used for nvcr.io.", metavar="NAME")
    ] = None,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Store your password for a container registry on the cluster, remove it, or list your registries.

    A session on the head node asks for the password without showing it, so it appears on no command line and
    in no log. Amazon ECR requires no password, because the nodes use their IAM role.
    """
    from ops.account.head_node import find_head_node
    from ops.account.session import account_clients
    from ops.connect import start_session
    from ops.registry import check, needs_no_password, script

    words = check(action, host, user)
    client = account_clients()
    if action == "login" and not needs_no_password(words[1]):
        return start_session(cluster, client, script(words), as_json=as_json)
    said = find_head_node(cluster, client).run(*shlex.split(script(words)))
    if as_json:
        return print_json({"action": action, "host": host, "output": said})
    return typer.echo(said or "No password for a registry is stored.\n", nl=False)
