"""The file of a report's page, checked before AWS is asked and written whole or not at all."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ops.report.record import Run
from ops.usage import OpsError, UsageError


def check_file(html: Path, *, force: bool) -> None:
    """Refuse a path that cannot be written, or must not be. Raises UsageError."""
    if html.is_dir():
        raise UsageError(f"report: {html} is a folder.\n  type:   --html {html / 'report.html'}")
    if not html.parent.is_dir():
        raise UsageError(f"report: there is no folder {html.parent}.\n  type:   mkdir -p {html.parent}")
    if html.exists() and not force:
        raise UsageError(
            f"report: {html} is there already.\n  type:   --force to overwrite it, or another name"
        )


def write_page(runs: Sequence[Run], html: Path) -> None:
    """Write the page of the runs. Raises OpsError if its library is missing or the file cannot be written."""
    from ops.report.page import render_page  # noqa: PLC0415 (only where it is wanted)

    content = render_page(runs)
    partial = html.with_name(f".{html.name}.partial")
    try:
        partial.write_bytes(content.encode())
        partial.replace(html)
    except OSError as error:
        raise OpsError(f"report: {html} cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)


def page_command(asked: Sequence[str], runs: Sequence[Run], cluster_name: str) -> str:
    """Return the command that writes the page of the same runs."""
    name = "-beside-".join(f"{run.workload}-{run.run}" for run in runs[:2])
    cluster = ["--cluster", cluster_name] if cluster_name != "training" else []
    return shlex.join(["trainctl", "report", *asked, *cluster, "--html", f"{name}.html"])
