"""The subcommand `trainctl rehearse`."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from ops.options import Json, print_json


def rehearse(
    *,
    family: Annotated[str, typer.Option(metavar="FAMILY", help="Instance family.")] = "p4d",
    workload: Annotated[str, typer.Option(metavar="WORKLOAD", help="Folder in assets/training.")] = "gpt2",
    nodes: Annotated[str, typer.Option(metavar="N", help="Number of compute nodes, 1 to 8.")] = "2",
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep everything running, and print how to use it.")
    ] = False,
    metrics: Annotated[
        str, typer.Option(metavar="STORE", help="cloudwatch, or prometheus, which starts a real one.")
    ] = "cloudwatch",
    container: Annotated[
        bool, typer.Option("--container", help="Build a container image, and train in it.")
    ] = False,
    stop: Annotated[bool, typer.Option("--stop", help="Stop a kept rehearsal.")] = False,
    folder: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Folder to write to. Default: .rehearsal.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Deploy to a local AWS, train on a local Slurm, report, tear down: no account, no cost.

    Ctrl-C stops everything that was started, at any time.
    """
    from rehearsal import commands

    folder = folder or commands.FOLDER
    with stdout_on_stderr() if as_json else nullcontext():
        if stop:
            code = commands.stop(folder)
        else:
            code = commands.rehearse(
                family=family,
                workload=workload,
                nodes=nodes,
                keep=keep,
                metrics=metrics,
                container=container,
                folder=folder,
            )
    if as_json:
        asked = {"family": family, "workload": workload, "nodes": nodes, "container": container}
        asked |= {"kept": keep and not code}
        print_json({**({"stopped": not code} if stop else asked), "exit_code": code})
    raise typer.Exit(code)


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """Redirect stdout to stderr, of started programs too: stdout is for the JSON object alone."""
    sys.stdout.flush()
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(stdout, 1)
        os.close(stdout)
