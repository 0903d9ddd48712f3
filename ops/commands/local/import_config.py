"""The subcommand `trainctl import`."""

from pathlib import Path
from typing import Annotated

import typer

from ops.options import Json, print_json


def import_config(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="FILE", help="ParallelCluster 3 config, or a CloudFormation template with one."
        ),
    ] = None,
    *,
    cluster: Annotated[
        str | None, typer.Option(metavar="NAME", help="Read the config of a running cluster instead.")
    ] = None,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder to write the files to.")] = Path(
        "imported"
    ),
    as_json: Json = False,
) -> None:
    """Convert a ParallelCluster config into flags, a queues file and an overrides file.

    The command renders the result and compares it with the original, value by value. The exit code is 1 if
    something is lost or open to more than before, and 2 if the file contains no config. Only --cluster
    requires an AWS account.
    """
    from ops.account.session import account_clients
    from ops.importing.command import import_config as translate
    from ops.importing.config_file import read_config_file, read_running_config
    from ops.importing.render import render_imported
    from ops.usage import UsageError

    if (file is None) == (cluster is None):
        raise UsageError("import: give a file, or --cluster NAME\n  type:   trainctl import config.yaml")
    config = read_config_file(file) if file else read_running_config(str(cluster), account_clients())
    found = translate(config, out)
    if as_json:
        print_json({"import": found, "complete": found.is_complete})
    else:
        typer.echo(render_imported(found))
    raise typer.Exit(0 if found.is_complete else 1)
