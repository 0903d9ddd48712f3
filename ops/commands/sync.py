"""`trainctl sync`."""

from __future__ import annotations

import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ops.options import Json, print_json


class Direction(StrEnum):
    """Which way."""

    UP = "up"
    DOWN = "down"


def sync(
    direction: Annotated[Direction, typer.Argument(help="up: to the bucket. down: from it.")],
    source: Annotated[str, typer.Argument(help="up: a folder here. down: a place in the bucket.")],
    target: Annotated[str, typer.Argument(help="up: a place in the bucket. down: a folder here.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would be copied.")] = False,
    as_json: Json = False,
) -> None:
    """Copy new and changed files between a folder here and the cluster's bucket; delete nothing.

    datasets/ appears on the nodes as /fsx/datasets by itself, and /fsx/checkpoints in the bucket as
    checkpoints/. Interrupted, the same command goes on. A place in the bucket: datasets/my-corpus.
    """
    from ops.account.session import account_clients
    from ops.sync import down, up
    from ops.usage import OpsError

    client = account_clients()
    if direction is Direction.UP:
        transfer = up(Path(source), target, client, dry_run=dry_run)
    else:
        transfer = down(source, Path(target), client, dry_run=dry_run)
    # What aws prints is for people: with --json, stdout is left to the object.
    done = subprocess.run(transfer.command, check=False, stdout=sys.stderr if as_json else None)
    if done.returncode:
        raise OpsError(
            f"`aws s3 sync` ended with {done.returncode}: see its lines above.\n"
            "  type:   the same again, which goes on where it was"
        )
    if as_json:
        return print_json({"transfer": transfer, "dry_run": dry_run})
    if transfer.note and not dry_run:
        typer.echo(transfer.note)
    return None
