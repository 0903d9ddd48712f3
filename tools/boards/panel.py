"""A board's panels and queries, before Grafana's library turns them into JSON."""

from dataclasses import dataclass
from typing import Literal

Unit = Literal["short", "percentunit", "bytes", "Bps", "s", "watt", "celsius", "hertz", "currencyUSD", "pps"]
Kind = Literal["graph", "table"]


@dataclass(frozen=True)
class Panel:
    """One panel: its title, its queries by legend (`{{label}}`), its unit and form."""

    title: str
    queries: tuple[tuple[str, str], ...]
    """Pairs of a query and its legend."""
    unit: Unit = "short"
    kind: Kind = "graph"
    about: str = ""


@dataclass(frozen=True)
class Board:
    """One board, with two panels per row."""

    uid: str
    title: str
    panels: tuple[Panel, ...]
    of_one_job: bool = False
    """True for a board with a job to choose: $job in its queries."""


def one(title: str, query: str, legend: str, unit: Unit = "short", about: str = "") -> Panel:
    """Return a graph of one query."""
    return Panel(title, ((query, legend),), unit, about=about)
