"""Calculates the cost of a cluster per hour: a row for each billed item, and their sums."""

import datetime
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ops.price.price_book import PriceBook
from ops.price.price_list import PRICE_LIST, SPOT
from training_cluster.advice.idle_cost import instances, permanent_charges
from training_cluster.catalog.charges import Charge
from training_cluster.catalog.families import load_base
from training_cluster.catalog.prices import Price
from training_cluster.cluster.fleet import compute_nodes
from training_cluster.cluster.nodes import Rendered
from training_cluster.flags.settings import Settings

_ASKED = (PRICE_LIST, SPOT)
_KINDS = {
    "ondemand": "on demand",
    "spot": "spot",
    "reservation": "reserved",
    "capacity-block": "a Capacity Block",
}


@dataclass(frozen=True, kw_only=True)
class Row:
    """An item that is billed by the hour. None is an unknown price, with the reason in `note`."""

    what: str
    idle_usd_per_hour: float | None
    full_usd_per_hour: float | None
    """Cost while all nodes run."""
    source: str
    """Sources of the prices: price list, spot price or catalog, each with its date; "" for none."""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class Quote:
    """Cost of one cluster. The sums contain the rows with a known price."""

    cluster_name: str
    instance_type: str
    nodes: int
    region: str
    rows: tuple[Row, ...]
    node_usd_per_hour: float | None
    """Cost of one compute node, with its disk."""
    standing_usd_per_hour: float
    """Cost of everything but the compute nodes."""
    why_catalog: str
    idle_usd_per_hour: float
    full_usd_per_hour: float
    idle_usd_per_month: float

    @property
    def unknown(self) -> tuple[Row, ...]:
        """Rows with an unknown price, which the sums omit."""
        return tuple(row for row in self.rows if row.full_usd_per_hour is None)


def make_quote(settings: Settings, book: PriceBook, config: Rendered) -> Quote:
    """Add up the cost of a cluster with these settings.

    Args:
        config: the deployed cluster's config, or the one that the settings and their files render.
    """
    hours = load_base().prices.hours_per_month
    standing = [_row(charge, hours) for charge in permanent_charges(settings, config, book.hour)]
    nodes = list(_nodes(settings, config, book, hours))
    rows = (*sorted(standing, key=lambda row: -(row.idle_usd_per_hour or 0)), *(row for row, _ in nodes))
    idle = sum(row.idle_usd_per_hour or 0 for row in rows)
    return Quote(
        cluster_name=settings.cluster_name,
        instance_type=settings.compute_type,
        nodes=settings.nodes,
        region=book.region,
        rows=rows,
        node_usd_per_hour=nodes[0][1],
        standing_usd_per_hour=sum(row.full_usd_per_hour or 0 for row in standing),
        why_catalog=book.why_catalog,
        idle_usd_per_hour=idle,
        full_usd_per_hour=sum(row.full_usd_per_hour or 0 for row in rows),
        idle_usd_per_month=idle * hours,
    )


def _row(charge: Charge, hours: int) -> Row:
    """Return the row of what always runs."""
    hour = None if charge.usd_per_month is None else charge.usd_per_month / hours
    return Row(
        what=charge.what,
        idle_usd_per_hour=hour,
        full_usd_per_hour=hour,
        source=_sources(charge.prices),
        note=charge.note,
    )


def _nodes(
    settings: Settings, config: Rendered, book: PriceBook, hours: int
) -> Iterator[tuple[Row, float | None]]:
    """Yield a row for each compute resource, the flags' queue first, and the cost of one node per hour."""
    cpu_queue = load_base().cpu_queue.name if settings.cpu_queue != "off" else None
    first, *_ = config["Scheduling"]["SlurmQueues"]
    for nodes in compute_nodes(config):
        count, kind, name, (type_, *others) = nodes.most, nodes.kind, nodes.queue, nodes.types
        place = "" if name == first["Name"] else f"queue {name}, "
        what = f"{count} x {type_}, {'cpu_queue' if name == cpu_queue else place + _KINDS[kind]}"
        what += f"; or as many of {', '.join(others)}" if others else ""
        price = book.spot.get(type_) if kind == "spot" else book.hour(type_)
        one = instances(1, nodes.roots, price, public=nodes.has_address, what=what)
        # A reservation costs as much as its nodes on demand, whether they run or not.
        always = count if kind == "reservation" else nodes.least
        notes = {
            "capacity-block": "paid in advance, with the purchase of the block",
            "reservation": "billed anyway; more, if the reservation has more nodes",
            "spot": "changes with the market" if price else book.why_no_spot,
            "ondemand": f"{always} always run (min_nodes)" if always else "",
        }
        hour = None if one.usd_per_month is None or kind == "capacity-block" else one.usd_per_month / hours
        row = Row(
            what=what,
            idle_usd_per_hour=None if hour is None else always * hour,
            full_usd_per_hour=None if hour is None else count * hour,
            source="" if hour is None else _sources(one.prices),
            note="; ".join(filter(None, (notes[kind], one.note if price or kind == "ondemand" else ""))),
        )
        yield row, hour


def _sources(prices: Iterable[Price]) -> str:
    """List each source once, with its oldest and newest date."""
    dates: dict[str, list[datetime.date]] = {}
    for price in prices:
        name = price.source if price.source.startswith(_ASKED) else "catalog"
        dates.setdefault(name + ("" if price.confirmed else " unconfirmed"), []).append(price.date)
    return "; ".join(
        f"{name} {' to '.join(dict.fromkeys(map(str, (min(found), max(found)))))}"
        for name, found in dates.items()
    )
