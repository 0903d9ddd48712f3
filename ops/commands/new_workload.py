"""`trainctl new-workload`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def new_workload(
    name: Annotated[str, typer.Argument(help="Name of the folder, and of the workload.")],
    into: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Where job.slurm is; default: assets/training.")
    ] = None,
    from_: Annotated[
        str | None, typer.Option("--from", metavar="WORKLOAD", help="Copy this workload, not the template.")
    ] = None,
) -> None:
    """Make the folder of a workload that runs as it is: a small trainer to put your own into."""
    from ops.new_workload import create_workload
    from training_cluster.paths import TRAINING

    folder = create_workload(name, into=into or TRAINING, source=from_)
    typer.echo(f"made {folder}")
    typer.echo(f"  rehearse it:  make rehearse WORKLOAD={name}")
    typer.echo("  the contract: docs/workloads.md")
