"""Outputs of a report for programs: its JSON, and the file of its page."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ops.report.compared import compare
from ops.report.html import write_file
from ops.report.record import Run
from ops.report.run_cost import cost_of


def write_page(runs: Sequence[Run], html: Path) -> None:
    """Write the page, completely or not at all. Raises OpsError without its library or on a write error."""
    from ops.report.page import render_page  # noqa: PLC0415 (only if it is requested)

    write_file(render_page(runs), html, command="report")


def run_as_json(run: Run) -> dict[str, Any]:
    """Return a run with its cost and its comparison with published figures."""
    return {"name": run.name, **run.model_dump(), "cost": cost_of(run), "compared": compare(run)}


def page_command(asked: Sequence[str], runs: Sequence[Run], cluster_name: str) -> str:
    """Return the command that writes the page of the same runs."""
    name = "-beside-".join(f"{run.workload}-{run.run}" for run in runs[:2])
    cluster = ["--cluster", cluster_name] if cluster_name != "training" else []
    return shlex.join(["trainctl", "report", *asked, *cluster, "--html", f"{name}.html"])
