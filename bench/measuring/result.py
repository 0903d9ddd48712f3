"""What a benchmark comes to: rows for people, the raw figures, a picture."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Verdict = Literal["met", "missed", "not run", ""]
"""Of a goal; empty for a figure that has none."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One line of docs/benchmarks.md."""

    name: str
    measured: str
    goal: str = ""
    verdict: Verdict = ""


@dataclass(frozen=True, kw_only=True)
class Bar:
    """A median with what it spread over."""

    name: str
    median: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Bars:
    """A picture: one bar a thing that was measured, and a line at the goal."""

    title: str
    x_label: str
    """With the unit."""
    bars: Sequence[Bar]
    goal: float | None = None


@dataclass(frozen=True, kw_only=True)
class Lines:
    """A picture: how something grows."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Result:
    """All of one benchmark."""

    rows: Sequence[Row]
    figures: Mapping[str, Any] = field(default_factory=dict)
    """Raw: whatever JSON holds."""
    picture: Bars | Lines | None = None
    notes: Sequence[str] = ()
    """What was compared with what, and what the figures do not show; a sentence each."""


def not_run(name: str, goal: str, why: str) -> Row:
    """A row of something that lacks here."""
    return Row(name=name, goal=goal, measured=f"not run: {why}", verdict="not run")


def bar(name: str, values: Sequence[float]) -> Bar:
    """The median, the least and the most of what was measured."""
    return Bar(name=name, median=statistics.median(values), low=min(values), high=max(values))


def spread(values: Sequence[float], unit: str = "", digits: int = 2) -> str:
    """`median unit (least to most, how often)`."""
    shown = bar("", values)
    median, low, high = (f"{each:.{digits}f}" for each in (shown.median, shown.low, shown.high))
    return f"{median}{unit} ({low} to {high}, {len(values)} runs)"


def at_most(name: str, ratios: Sequence[float], goal: float, unit: str = "x") -> Row:
    """A row whose median must not exceed the goal."""
    met = statistics.median(ratios) <= goal
    return Row(
        name=name,
        goal=f"<= {goal:g}{unit}",
        measured=spread(ratios, unit),
        verdict="met" if met else "missed",
    )


def at_least(name: str, ratios: Sequence[float], goal: float, unit: str = "x") -> Row:
    """A row whose median must not fall below the goal."""
    met = statistics.median(ratios) >= goal
    return Row(
        name=name,
        goal=f">= {goal:g}{unit}",
        measured=spread(ratios, unit),
        verdict="met" if met else "missed",
    )
