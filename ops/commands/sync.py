"""The subcommand `trainctl sync`."""

import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ops.options import Json, print_json


class Direction(StrEnum):
    """Direction of a copy."""

    UP = "up"
    DOWN = "down"


def sync(
    direction: Annotated[
        Direction, typer.Argument(metavar="up|down", help="up: to the bucket. down: from the bucket.")
    ],
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="up: a local folder. down: a path in the bucket.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="up: a path in the bucket. down: a local folder.")
    ],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the files to copy.")] = False,
    as_json: Json = False,
) -> None:
    """Copy new and changed files between a local folder and the cluster's bucket. Deletes nothing.

    Lustre imports datasets/ to /fsx/datasets on the nodes, and exports /fsx/checkpoints to checkpoints/.
    Example of a path in the bucket: datasets/my-corpus. To continue after an interruption, run the same
    command again.
    """
    from ops.account.session import account_clients
    from ops.sync import down, up
    from ops.usage import OpsError

    client = account_clients()
    if direction is Direction.UP:
        transfer = up(Path(source), target, client, dry_run=dry_run)
    else:
        transfer = down(source, Path(target), client, dry_run=dry_run)
    # The output of aws is for people: with --json, stdout holds nothing but the object.
    done = subprocess.run(transfer.command, check=False, stdout=sys.stderr if as_json else None)
    if done.returncode:
        raise OpsError(
            f"`aws s3 sync` failed with exit code {done.returncode}: see its output above.\n"
            "  type:   the same command again, which continues the copy"
        )
    if as_json:
        return print_json({"transfer": transfer, "dry_run": dry_run})
    if transfer.note and not dry_run:
        typer.echo(transfer.note)
    return None
