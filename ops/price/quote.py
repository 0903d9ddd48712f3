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
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.queues.queue import Queue

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


def make_quote(settings: Settings, book: PriceBook) -> Quote:
    """Add up the cost of a cluster with these settings."""
    hours, config = load_base().prices.hours_per_month, config_before_deploy(settings)
    standing = [_row(charge, hours) for charge in permanent_charges(settings, config, book.hour)]
    nodes, node_month = _nodes(settings, book, hours)
    rows = (*sorted(standing, key=lambda row: -(row.idle_usd_per_hour or 0)), nodes)
    rows += tuple(row for queue in settings.all_queues[1:] for row in _beside(queue, settings, book, hours))
    idle = sum(row.idle_usd_per_hour or 0 for row in rows)
    return Quote(
        cluster_name=settings.cluster_name,
        instance_type=settings.compute_type,
        nodes=settings.nodes,
        region=book.region,
        rows=rows,
        node_usd_per_hour=None if node_month is None else node_month / hours,
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


def _nodes(settings: Settings, book: PriceBook, hours: int) -> tuple[Row, float | None]:
    """Return the row of the compute nodes, and the cost of one of them per month."""
    kind, count, type_ = settings.capacity_type, settings.nodes, settings.compute_type
    what = f"{count} x {type_}, {_KINDS[kind]}"
    if kind == "capacity-block":
        why = "paid in advance, with the purchase of the block"
        return Row(what=what, idle_usd_per_hour=None, full_usd_per_hour=None, source="", note=why), None
    price = book.spot.get(type_) if kind == "spot" else book.hour(type_)
    one = instances(1, settings.first_queue.root_gib, price, what=what)
    if one.usd_per_month is None:
        why = book.why_no_spot if kind == "spot" else one.note
        return Row(what=what, idle_usd_per_hour=None, full_usd_per_hour=None, source="", note=why), None
    # A reservation costs as much as its nodes on demand, whether they run or not.
    always = count if kind == "reservation" else settings.static_nodes
    hour = one.usd_per_month / hours
    notes = {
        "reservation": "billed anyway; more, if the reservation has more nodes",
        "spot": "changes with the market",
    }
    note = notes.get(kind) or (f"{always} always run (min_nodes)" if always else "")
    row = Row(
        what=what,
        idle_usd_per_hour=always * hour,
        full_usd_per_hour=count * hour,
        source=_sources(one.prices),
        note=note,
    )
    return row, one.usd_per_month


def _beside(queue: Queue, settings: Settings, book: PriceBook, hours: int) -> Iterator[Row]:
    """Yield a row for each compute resource of a queue of the file of queues."""
    is_cpu_queue = queue.name == load_base().cpu_queue.name and settings.cpu_queue != "off"
    for resource in queue.compute_resources:
        type_, count, kind = resource.types[0].name, resource.max_count, queue.capacity_of(resource)
        words = "cpu_queue" if is_cpu_queue else f"queue {queue.name}, {_KINDS[kind]}"
        what = f"{count} x {type_}, {words}"
        if kind == "capacity-block":
            why = "paid in advance, with the purchase of the block"
            yield Row(what=what, idle_usd_per_hour=None, full_usd_per_hour=None, source="", note=why)
            continue
        price = book.spot.get(type_) if kind == "spot" else book.hour(type_)
        one = instances(1, queue.root_gib, price, what=what)
        hour = None if one.usd_per_month is None else one.usd_per_month / hours
        always = count if kind == "reservation" else resource.min_count
        others = f"; or as many of {', '.join(each.name for each in resource.types[1:])}"
        note = one.note if kind != "spot" or hour is not None else book.why_no_spot
        yield Row(
            what=what + (others if len(resource.types) > 1 else ""),
            idle_usd_per_hour=None if hour is None else always * hour,
            full_usd_per_hour=None if hour is None else count * hour,
            source=_sources(one.prices),
            note=note,
        )


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
