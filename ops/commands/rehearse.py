"""`trainctl rehearse`: what `make rehearse` and `make stop` call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import Annotated

import typer

from ops.options import Json, print_json


def rehearse(
    *,
    family: Annotated[str, typer.Option(help="Instance family.")] = "p4d",
    workload: Annotated[str, typer.Option(help="A folder of assets/training.")] = "gpt2",
    nodes: Annotated[str, typer.Option(help="Compute nodes, 1 to 8.")] = "2",
    keep: Annotated[bool, typer.Option("--keep", help="Leave it running, and say how to use it.")] = False,
    stop: Annotated[bool, typer.Option("--stop", help="End one that was kept.")] = False,
    as_json: Json = False,
) -> None:
    """Deploy to a local AWS, train on a local Slurm, report, tear down: no account, no cost.

    Ctrl-C at any moment stops whatever was started.
    """
    arguments = [
        "run",
        "--family",
        family,
        "--workload",
        workload,
        "--nodes",
        nodes,
        "--keep",
        "1" if keep else "",
    ]
    command = [sys.executable, "-m", "rehearsal", *(["stop"] if stop else arguments)]
    if not as_json:
        os.execv(command[0], command)  # noqa: S606 - no shell is meant
    code = _run(command)
    asked = {"family": family, "workload": workload, "nodes": nodes, "kept": keep and not code}
    print_json({**({"stopped": not code} if stop else asked), "exit_code": code})
    raise typer.Exit(code)


def _run(command: list[str]) -> int:
    """Run a command to its end, with its output on stderr; Ctrl-C reaches it, so that it can clean up."""
    with subprocess.Popen(command, stdout=sys.stderr) as rehearsal:
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            return rehearsal.wait()
        finally:
            signal.signal(signal.SIGINT, before)
