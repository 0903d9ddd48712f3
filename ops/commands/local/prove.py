"""The subcommand `trainctl prove`."""

from contextlib import nullcontext
from typing import Annotated

import typer

from ops.options import Json, print_json


def prove(
    workload: Annotated[str, typer.Argument(metavar="WORKLOAD", help="Folder in assets/training.")],
    cases: Annotated[
        list[str] | None,
        typer.Argument(metavar="[CASE]...", help="kill, stop, truncate, disk, resize, node. Default: all."),
    ] = None,
    *,
    nodes: Annotated[int, typer.Option(metavar="N", min=2, max=7, help="Nodes that train, 2 to 7.")] = 2,
    as_json: Json = False,
) -> None:
    """Kill ranks, stop, damage and fill what a training needs, in a rehearsal; compare the losses.

    Your variables reach the runs: `MAX_STEPS=50 trainctl prove my-model`. The exit code is 1 if a case fails.
    """
    from ops.commands.local.rehearse import stdout_on_stderr
    from rehearsal import commands

    with stdout_on_stderr() if as_json else nullcontext():
        code = commands.prove(workload=workload, cases=cases or (), nodes=nodes)
    if as_json:
        print_json({"workload": workload, "nodes": nodes, "exit_code": code})
    raise typer.Exit(code)
