"""The subcommand `trainctl report`."""

from pathlib import Path
from typing import Annotated

import typer

from ops.options import Cluster, Json, console, print_json


def report(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Job id, run name, WORKLOAD/RUN or a run's local folder. Several are shown side by side.",
        ),
    ],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write a page that loads no other files.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing FILE.")] = False,
    cluster: Cluster = "training",
    as_json: Json = False,
) -> None:
    """Show curves, restarts, checkpoints and cost of training runs, next to published figures."""
    from ops.report.html import check_file
    from ops.report.output import page_command, run_as_json, write_page
    from ops.report.source import read_runs
    from ops.report.text import print_report

    if html:
        check_file(html, force=force, command="report")
    found = read_runs(runs, cluster)
    if html:
        write_page(found, html)
    if as_json:
        return print_json({"runs": [run_as_json(run) for run in found], "files": {"html": html}})
    terminal = console()
    print_report(found, terminal)
    line = f"page:    {html}" if html else f"As a page: {page_command(runs, found, cluster)}"
    return terminal.print(line, markup=False)
