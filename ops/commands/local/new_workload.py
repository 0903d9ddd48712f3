"""The subcommand `trainctl new-workload`."""

from pathlib import Path
from typing import Annotated

import typer

from ops.options import Json, print_json


def new_workload(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the folder, and of the workload.")],
    into: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Folder that contains job.slurm. Default: assets/training."),
    ] = None,
    from_: Annotated[
        str | None,
        typer.Option("--from", metavar="WORKLOAD", help="Workload to copy instead of the template."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a workload that runs as it is: a folder with a small trainer for you to replace."""
    from ops.new_workload import create_workload
    from training_cluster.paths import TRAINING

    folder = create_workload(name, into=into or TRAINING, source=from_)
    if as_json:
        print_json({"workload": name, "folder": folder})
        return
    typer.echo(f"created {folder}")
    typer.echo(f"  rehearse it:  trainctl rehearse --workload {name}")
    typer.echo("  the contract: docs/workloads.md")
