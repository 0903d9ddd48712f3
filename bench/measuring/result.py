"""Results of a benchmark: rows of the page, the raw figures, a picture."""

from __future__ import annotations

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
class Bar:
    """A median with the lowest and the highest value."""

    name: str
    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Bars:
    """A bar chart: one bar per measured program, and a line at the goal."""

    title: str
    x_label: str
    """Label of the axis, with the unit."""
    bars: Sequence[Bar]
    goal: float | None = None


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A line chart of growth."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Result:
    """The complete result of one benchmark."""

    rows: Sequence[Row]
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Raw figures; JSON can hold them."""
    picture: Bars | Lines | None = None
    notes: Sequence[str] = ()
    """Sentences about the comparison, and about what the figures do not show."""


def not_run(name: str, goal: str, why: str) -> Row:
    """Return a row for a measurement that is not possible here."""
    return Row(name=name, goal=goal, measured=f"not run: {why}", verdict="not run")


def bar(name: str, values: Sequence[float]) -> Bar:
    """Return the median, the lowest and the highest of the measured values."""
    return Bar(name=name, median=statistics.median(values), low=min(values), high=max(values))


def spread(values: Sequence[float], unit: str = "", digits: int = 2) -> str:
    """Format values as `median unit (lowest to highest, number of runs)`."""
    shown = bar("", values)
    median, low, high = (f"{each:.{digits}f}" for each in (shown.median, shown.low, shown.high))
    return f"{median}{unit} ({low} to {high}, {len(values)} runs)"


def at_most(name: str, ratios: Sequence[float], goal: float, unit: str = "x") -> Row:
    """Return a row whose median must not exceed the goal."""
    met = statistics.median(ratios) <= goal
    return Row(
        name=name,
        goal=f"<= {goal:g}{unit}",
        measured=spread(ratios, unit),
        verdict="met" if met else "missed",
    )


def at_least(name: str, ratios: Sequence[float], goal: float, unit: str = "x") -> Row:
    """Return a row whose median must not fall below the goal."""
    met = statistics.median(ratios) >= goal
    return Row(
        name=name,
        goal=f">= {goal:g}{unit}",
        measured=spread(ratios, unit),
        verdict="met" if met else "missed",
    )
