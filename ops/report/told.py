"""A report for programs."""

from __future__ import annotations

from typing import Any

from ops.report.compared import compare
from ops.report.money import cost_of
from ops.report.record import Run


def told(run: Run) -> dict[str, Any]:
    """The run, with what was worked out of it."""
    return {"name": run.name, **run.model_dump(), "cost": cost_of(run), "compared": compare(run)}
