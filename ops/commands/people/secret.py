"""The subcommand `trainctl secret set`."""

import shlex
from typing import Annotated

import typer

from ops.options import Cluster, Command, Group, Json

app = typer.Typer(cls=Group, help="Store a secret of your jobs on the cluster.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    pass


@app.command("set", cls=Command, epilog="Example: `trainctl secret set HF_TOKEN`")
def set_secret(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the secret, such as HF_TOKEN.")],
    *,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Ask for a secret without showing it, and store it in a file of your home that only you can read.

    A session on the head node asks, so the secret appears on no command line and in no log. Pass it to a job
    by `trainctl submit --env NAME=file:.training-cluster/NAME`.
    """
    from ops.account.session import account_clients
    from ops.connect import start_session
    from ops.jobs.secrets import script

    start_session(cluster, account_clients(), shlex.join(script(name)), as_json=as_json)
