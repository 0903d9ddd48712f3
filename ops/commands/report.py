"""The subcommand `trainctl report`."""

from typing import Annotated

import typer

from ops.options import Cluster, Force, Html, Json, console, print_json


def report(
    *,
    runs: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN",
            help="Job id, run name, WORKLOAD/RUN or a run's local folder. Several are shown side by side.",
        ),
    ],
    html: Html = None,
    force: Force = False,
    cluster: Cluster,
    as_json: Json = False,
) -> None:
    """Show curves, restarts, checkpoints and cost of training runs, next to published figures."""
    from ops.report.compared import compare
    from ops.report.goodput import forecast_of
    from ops.report.html import check_file, write_file
    from ops.report.run_cost import cost_of
    from ops.report.source import read_runs
    from ops.report.text import page_command, print_report

    if html:
        check_file(html, force=force, command="report")
    found = read_runs(runs, cluster)
    if html:
        from ops.report.page import render_page

        write_file(render_page(found), html, command="report")
    if as_json:
        as_dicts = [
            {"name": run.name, **run.model_dump(), "cost": cost_of(run), "compared": compare(run)}
            | {"forecast": forecast_of(run)}
            for run in found
        ]
        return print_json({"runs": as_dicts, "files": {"html": html}})
    terminal = console()
    print_report(found, terminal)
    line = f"page:    {html}" if html else f"As a page: {page_command(runs, found, cluster)}"
    return terminal.print(line, markup=False)
