"""Forecasts the share of paid GPU time that trains, from published rates of interruptions."""

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    facts: tuple[str, ...]
    """Sentences about the seconds that were given or assumed."""


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


def spares_worth(*, nodes: int, per_node_day: float) -> int:
    """Return the number of spare nodes that costs least: the s that minimises s + N P(X > s).

    X, the number of nodes that are being replaced, is Poisson with mean N r H (a queue M/G/inf): r is the
    rate of a node, H = REPLACE_S. More than s of them leave all N nodes idle and paid. A spare has the
    price of a node, which therefore cancels. Every interruption is taken to lose a node: an upper bound.
    """
    mean = nodes * per_node_day * REPLACE_S / _DAY_S
    probability, beyond, costs = math.exp(-mean), 1 - math.exp(-mean), [nodes * (1 - math.exp(-mean))]
    for spares in range(1, nodes + 1):
        probability *= mean / spares
        beyond = max(0.0, beyond - probability)
        costs.append(spares + nodes * beyond)
    return costs.index(min(costs))


def rates_of(family: str, *, accelerators: int, is_spot: bool) -> list[Rate]:
    """Return the rates of interruptions.tsv that add up for a node with so many accelerators.

    A rate per node of 8 GPUs is taken as that of 8 accelerators, since most interruptions are theirs; a CPU
    node has the rate of 8. Spot interruptions are per node.
    """
    lines = _RATES.read_text(encoding="utf-8").splitlines()
    rows = {name: row for row in csv.DictReader(lines, delimiter="\t") for name in row["families"].split()}
    found = []
    for name in [family if family in rows else _ANY, *([_SPOT] if is_spot else [])]:
        row, source = rows[name], rows[name]["source"]
        per_node_day, measured = float(row["per_1000_node_days"]) / 1000, int(row["gpus"] or 0)
        if name == _ANY:
            source = f"no rate is recorded here for {family}; used instead: {source}"
        if measured and accelerators not in (0, measured):
            per_node_day *= accelerators / measured
            source += f"; scaled from {measured} accelerators a node to {accelerators}"
        found.append(Rate(per_node_day=per_node_day, source=source))
    return found


def rates_for(settings: Settings) -> list[Rate]:
    """Return the rates of a node of the first queue."""
    is_spot = settings.first_queue.capacity_type == "spot"
    return rates_of(settings.family, accelerators=settings.size.accelerators, is_spot=is_spot)


def forecast(
    rates: Sequence[Rate],
    *,
    nodes: int,
    days: float,
    save_s: float | None,
    restart_s: float | None,
    estimated_s: float = 0.0,
) -> Forecast:
    """Forecast a run on so many nodes with these rates.

    Args:
        save_s, restart_s: measured seconds of a save and of a restart; None for the assumption.
        estimated_s: seconds of a save by its size, in place of the assumption; 0 if they are not known.
    """
    per_node_day = sum(rate.per_node_day for rate in rates)
    between_s = _DAY_S / (nodes * per_node_day)
    save, restart = save_s or estimated_s or SAVE_S, restart_s or RESTART_S
    by_size = "estimated from its size, shorter where training continues meanwhile"
    how = "measured" if save_s else f"{by_size if estimated_s else 'assumed'}: --save-s"
    every_s = best_interval(save_s=save, between_s=between_s)
    trains = train_share(every_s=every_s, save_s=save, between_s=between_s, restart_s=restart)
    # The best interval is longer than between_s only if d > M / 2, and then the share is 0, too.
    limit = (
        "" if trains else ", which leaves no time to train: the formulas hold for shorter saves and restarts"
    )
    return Forecast(
        days=days,
        interruptions=days * _DAY_S / between_s,
        save_every_s=every_s,
        spares=spares_worth(nodes=nodes, per_node_day=per_node_day),
        train_share=trains,
        sources=tuple(rate.source for rate in rates),
        facts=(
            f"a save takes {save:.4g} s ({how})",
            f"a restart takes {restart:.4g} s ({'measured' if restart_s else 'assumed: --restart-s'})",
            f"a lost node is replaced after {REPLACE_S:g} s (assumed)",
            f"an interruption comes every {between_s:,.0f} s{limit}",
        ),
    )
