"""Calculates the cost of a run's nodes at list prices."""

import datetime
from collections.abc import Iterator
from dataclasses import dataclass

from ops.report.record import Run, Use
from training_cluster.catalog.families import instance_hour

_HOUR_S = 3600


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cost of the nodes of one run."""

    usd: float | None
    """Cost in USD; None if it is unknown, or nothing was paid."""
    node_hours: float
    usd_per_million_tokens: float | None
    lines: tuple[str, ...]
    """Sentences about the parts of the cost, and about costs that are not included."""
    price_date: datetime.date | None


def cost_of(run: Run) -> Cost:
    """Multiply the node-hours by the catalog's on-demand price of an hour."""
    node_hours = sum(use.node_s for use in run.use) / _HOUR_S
    paid = [use for use in run.use if not use.rehearsal]
    prices = [instance_hour(use.instance_type) if use.instance_type else None for use in paid]
    known = [price for price in prices if price]
    usd = None
    if paid and len(known) == len(paid):
        usd = sum(use.node_s / _HOUR_S * price.usd for use, price in zip(paid, known, strict=True))
    tokens = run.summary.tokens
    lines = [line for use in run.use for line in _lines(use)]
    if usd is not None:
        lines.append(
            "From the allocation of the nodes (older runs: the first start) to the end of the last start, "
            "spares included, without boot, idle time, head node and storage."
        )
    return Cost(
        usd=usd,
        node_hours=node_hours,
        usd_per_million_tokens=usd / tokens * 1e6 if usd is not None and tokens else None,
        lines=tuple(lines),
        price_date=max((price.date for price in known), default=None),
    )


def _lines(use: Use) -> Iterator[str]:
    hours = f"{use.node_s / _HOUR_S:.2f} node-hours"
    if use.rehearsal:
        yield f"{hours} of a rehearsal: nothing was paid."
        return
    if use.instance_type is None:
        yield f"{hours} of nodes whose type the run did not record: cost unknown."
        return
    price = instance_hour(use.instance_type)
    if price is None:
        yield f"{hours} of {use.instance_type}, for which the catalog has no price."
        return
    sure = "" if price.confirmed else ", unconfirmed"
    yield (
        f"{hours} of {use.instance_type} at {price.usd:.4g} USD an hour: list price on demand, us-east-1, "
        f"{price.date}{sure}."
    )
    if use.capacity == "spot":
        yield "They were spot instances, which cost less than that."
    elif use.capacity == "capacity-block":
        yield "They were of a Capacity Block, which is paid in advance at its own price."
