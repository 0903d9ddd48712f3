"""Results of a benchmark: rows of the page, and the raw figures."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["met", "missed", "not run", ""]
"""Result of comparing a figure with its goal; empty if it has none."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of docs/benchmarks.md."""

    name: str
    measured: str
    goal: str = ""
    verdict: Verdict = ""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The complete result of one benchmark."""

    rows: Sequence[Row]
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Raw figures; JSON can hold them."""
    notes: Sequence[str] = ()
    """Sentences about the comparison, and about what the figures do not show."""


def not_run(name: str, goal: str, why: str) -> Row:
    """Return a row for a measurement that is not possible here."""
    return Row(name=name, goal=goal, measured=f"not run: {why}", verdict="not run")


def spread(values: Sequence[float], unit: str = "", digits: int = 2) -> str:
    """Format values as `median unit (lowest to highest, number of runs)`, and one value as `value unit`."""
    figures = (statistics.median(values), min(values), max(values))
    median, low, high = (f"{each:.{digits}f}" for each in figures)
    runs = f" ({low} to {high}, {len(values)} runs)" if len(values) > 1 else ""
    return f"{median}{unit}{runs}"


def at_most(name: str, ratios: Sequence[float], goal: float, unit: str = "x") -> Row:
    """Return a row whose median must not exceed the goal."""
    return _compared(name, ratios, f"<= {goal:g}{unit}", unit, statistics.median(ratios) <= goal)


def at_least(name: str, ratios: Sequence[float], goal: float, unit: str = "x") -> Row:
    """Return a row whose median must not fall below the goal."""
    return _compared(name, ratios, f">= {goal:g}{unit}", unit, statistics.median(ratios) >= goal)


def _compared(name: str, ratios: Sequence[float], goal: str, unit: str, met: bool) -> Row:
    return Row(name=name, goal=goal, measured=spread(ratios, unit), verdict="met" if met else "missed")
