"""Forecasts the share of paid GPU time that trains, from published rates of interruptions."""

import csv
import math
from dataclasses import dataclass
from pathlib import Path

from ops.usage import UsageError
from training_cluster.flags.settings import Settings

SAVE_S, RESTART_S, REPLACE_S = 60.0, 600.0, 3600.0
"""Assumed seconds: a save holds the training, a restart until the next step, a lost node is replaced."""
_RATES = Path(__file__).with_name("interruptions.tsv")
_ANY, _SPOT, _DAY_S = "any", "spot", 86400


@dataclass(frozen=True, kw_only=True)
class Rate:
    """Interruptions of one node, with their source."""

    per_node_day: float
    source: str


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """Interruptions of a run on all nodes, and what they cost."""

    days: float
    interruptions: float
    """Expected number."""
    save_every_s: float
    spares: int
    train_share: float
    """Share of paid time that trains, in 0 to 1, with save_every_s between two saves."""
    sources: tuple[str, ...]
    assumed: tuple[str, ...]
    """A sentence for each time that was not given."""


def best_interval(*, save_s: float, between_s: float) -> float:
    """Return the seconds between two saves that lose least time: T = sqrt(2 d M).

    Young, A first order approximation to the optimum checkpoint interval (1974); it holds for d << M.

    Args:
        save_s: d, seconds for which a save holds the training.
        between_s: M, mean seconds between interruptions of the whole job.
    """
    return math.sqrt(2 * save_s * between_s)


def train_share(*, every_s: float, save_s: float, between_s: float, restart_s: float) -> float:
    """Return the share of the time that trains, 1 - (d/T + T/2M + R/M); 0 if interruptions take all of it.

    An interruption loses half an interval on average, and a restart of R = restart_s seconds.
    """
    lost = save_s / every_s + every_s / (2 * between_s) + restart_s / between_s
    return max(0.0, 1 - lost)


def spares_worth(*, nodes: int, per_node_day: float, replace_s: float = REPLACE_S) -> int:
    """Return the number of spare nodes that costs least: the s that minimises s + N P(X > s).

    X, the number of nodes that are being replaced, is Poisson with mean N r H (a queue M/G/inf): r is the
    rate of a node, H = replace_s. More than s of them leave all N nodes idle and paid. A spare has the
    price of a node, which therefore cancels. Every interruption is taken to lose a node: an upper bound.
    """
    mean = nodes * per_node_day * replace_s / _DAY_S
    probability, beyond, costs = math.exp(-mean), 1 - math.exp(-mean), [nodes * (1 - math.exp(-mean))]
    for spares in range(1, nodes + 1):
        probability *= mean / spares
        beyond = max(0.0, beyond - probability)
        costs.append(spares + nodes * beyond)
    return costs.index(min(costs))


def rates_of(family: str, *, is_spot: bool) -> list[Rate]:
    """Return the rates that add up for a node of this family, of interruptions.tsv."""
    lines = _RATES.read_text(encoding="utf-8").splitlines()
    rows = {row["family"]: row for row in csv.DictReader(lines, delimiter="\t")}
    found = []
    for name in [family if family in rows else _ANY, *([_SPOT] if is_spot else [])]:
        prefix = f"no rate is recorded here for {family}; used instead: " if name == _ANY else ""
        found.append(
            Rate(
                per_node_day=float(rows[name]["per_1000_node_days"]) / 1000,
                source=prefix + rows[name]["source"],
            )
        )
    return found


def forecast(
    settings: Settings, *, days: float, save_s: float | None = None, restart_s: float | None = None
) -> Forecast:
    """Forecast a run on all nodes of the first queue.

    Args:
        save_s, restart_s: measured seconds of a save and of a restart; None for the assumption.

    Raises:
        UsageError: saves take longer than the time between two interruptions, where the formulas end.
    """
    rates = rates_of(settings.family, is_spot=settings.first_queue.capacity_type == "spot")
    per_node_day = sum(rate.per_node_day for rate in rates)
    between_s = _DAY_S / (settings.nodes * per_node_day)
    given = {"a save": (save_s, SAVE_S, "--save-s"), "a restart": (restart_s, RESTART_S, "--restart-s")}
    save, restart = (assumed if it is None else it for it, assumed, _ in given.values())
    every_s = best_interval(save_s=save, between_s=between_s)
    if save >= between_s:
        raise UsageError(
            f"price: a save of {save:g} s is longer than the {between_s:,.0f} s between two interruptions\n"
            "  type:    --save-s N, less than that, or -c nodes=N, fewer"
        )
    return Forecast(
        days=days,
        interruptions=days * _DAY_S / between_s,
        save_every_s=every_s,
        spares=spares_worth(nodes=settings.nodes, per_node_day=per_node_day),
        train_share=train_share(every_s=every_s, save_s=save, between_s=between_s, restart_s=restart),
        sources=tuple(rate.source for rate in rates),
        assumed=(
            *(f"{what} takes {d:g} s ({flag})" for what, (it, d, flag) in given.items() if it is None),
            f"a lost node is replaced after {REPLACE_S:g} s",
        ),
    )
