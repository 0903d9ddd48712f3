"""Results of a benchmark: rows of the page, and the raw figures."""

import math
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


def spread(values: Sequence[float], unit: str = "", digits: int = 2) -> str:
    """Format values as `median unit (lowest to highest, number of runs)`, and one value as `value unit`."""
    figures = (statistics.median(values), min(values), max(values))
    median, low, high = (f"{each:.{digits}f}" for each in figures)
    runs = f" ({low} to {high}, {len(values)} runs)" if len(values) > 1 else ""
    return f"{median}{unit}{runs}"


def at_most(name: str, values: Sequence[float], goal: float, unit: str = "x", *, absent: str = "") -> Row:
    """Return a row whose median must not exceed the goal; without values, `absent` is the reason."""
    return _compared(name, values, f"<= {goal:g}{unit}", unit, met=_median(values) <= goal, absent=absent)


def at_least(name: str, values: Sequence[float], goal: float, unit: str = "x", *, absent: str = "") -> Row:
    """Return a row whose median must not fall below the goal; without values, `absent` is the reason."""
    return _compared(name, values, f">= {goal:g}{unit}", unit, met=_median(values) >= goal, absent=absent)


def _median(values: Sequence[float]) -> float:
    return statistics.median(values or [math.nan])


def _compared(name: str, values: Sequence[float], goal: str, unit: str, *, met: bool, absent: str) -> Row:
    if not values:
        return Row(name=name, goal=goal, measured=f"not run: {absent}", verdict="not run")
    return Row(name=name, goal=goal, measured=spread(values, unit), verdict="met" if met else "missed")
