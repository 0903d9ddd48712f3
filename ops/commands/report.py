"""`trainctl report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ops.options import Cluster, Json, console, print_json


def report(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN...",
            help="Job id, run, WORKLOAD/RUN, or a run's folder on this machine; several side by side.",
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one page that loads nothing else.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Write the curves as a picture.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite FILE.")] = False,
    cluster: Cluster = "training",
    as_json: Json = False,
) -> None:
    """Show what training runs came to: curves, restarts, checkpoints, cost, beside published figures."""
    from ops.report.output import check_files, offer, write_files
    from ops.report.source import read_runs
    from ops.report.text import print_report

    files = check_files(html=html, png=png, force=force)
    found = read_runs(runs, cluster)
    write_files(found, files)
    if as_json:
        from ops.report.told import told

        return print_json({"runs": [told(run) for run in found], "files": files})
    terminal = console()
    print_report(found, terminal)
    for line in offer(runs, found, files, cluster):
        terminal.print(line, markup=False)
    return None
