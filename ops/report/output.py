"""Outputs of a report for programs: its JSON, and the file of its page."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ops.report.compared import compare
from ops.report.record import Run
from ops.report.run_cost import cost_of
from ops.usage import OpsError, UsageError


def check_file(html: Path, *, force: bool) -> None:
    """Refuse a path that cannot or must not be written, before AWS is asked. Raises UsageError."""
    if html.is_dir():
        raise UsageError(f"report: {html} is a folder.\n  type:   --html {html / 'report.html'}")
    if not html.parent.is_dir():
        raise UsageError(f"report: there is no folder {html.parent}.\n  type:   mkdir -p {html.parent}")
    if html.exists() and not force:
        raise UsageError(
            f"report: {html} exists already.\n  type:   --force to overwrite it, or another name"
        )


def write_page(runs: Sequence[Run], html: Path) -> None:
    """Write the page, completely or not at all. Raises OpsError without its library or on a write error."""
    from ops.report.page import render_page  # noqa: PLC0415 (only if it is requested)

    content = render_page(runs)
    partial = html.with_name(f".{html.name}.partial")
    try:
        partial.write_bytes(content.encode())
        partial.replace(html)
    except OSError as error:
        raise OpsError(f"report: {html} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def run_as_json(run: Run) -> dict[str, Any]:
    """Return a run with its cost and its comparison with published figures."""
    return {"name": run.name, **run.model_dump(), "cost": cost_of(run), "compared": compare(run)}


def page_command(asked: Sequence[str], runs: Sequence[Run], cluster_name: str) -> str:
    """Return the command that writes the page of the same runs."""
    name = "-beside-".join(f"{run.workload}-{run.run}" for run in runs[:2])
    cluster = ["--cluster", cluster_name] if cluster_name != "training" else []
    return shlex.join(["trainctl", "report", *asked, *cluster, "--html", f"{name}.html"])
