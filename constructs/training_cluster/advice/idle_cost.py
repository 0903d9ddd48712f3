"""Cost of a deploy while no job runs: shown before it is made, since nobody looks for it afterwards."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from training_cluster.catalog.families import instance_hour, load_base
from training_cluster.catalog.monthly_costs import (
    MonthlyCost,
    aurora_month,
    efs_month,
    hourly_month,
    interface_endpoints_month,
    lustre_month,
    nat_gateway_month,
)
from training_cluster.catalog.prices import Price, Prices
from training_cluster.flags.network import INTERFACE_ENDPOINTS
from training_cluster.flags.settings import Settings
from training_cluster.queues.queue import Queue

DAYS_PER_MONTH = 365 / 12

InstanceHour = Callable[[str], Price | None]
"""Price of an hour of an instance type; None when it is not known."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One resource that is billed while no job runs."""

    what: str
    usd_per_month: float | None
    """Monthly cost; None when it is not known."""
    prices: tuple[Price, ...] = ()
    why_unknown: str = ""

    @property
    def confirmed(self) -> bool:
        """True when a source states each of the prices."""
        return all(price.confirmed for price in self.prices)


@dataclass(frozen=True, kw_only=True)
class IdleCost:
    """Monthly cost of a cluster without jobs, item by item."""

    items: tuple[Item, ...]

    @property
    def usd_per_month(self) -> float:
        """Sum over all items whose price is known."""
        return sum(item.usd_per_month or 0 for item in self.items)

    @property
    def dates(self) -> tuple[datetime.date, datetime.date] | None:
        """Dates of the oldest and the newest price; None without any price."""
        dates = [price.date for item in self.items for price in item.prices]
        return (min(dates), max(dates)) if dates else None


def idle_cost(settings: Settings) -> IdleCost:
    """Return everything that is billed by the hour, dearest first; not storage by the byte, nor traffic."""
    items = [*_nodes(settings), *permanent_items(settings, instance_hour)]
    return IdleCost(items=tuple(sorted(items, key=lambda item: -(item.usd_per_month or 0))))


def permanent_items(settings: Settings, hour_of: InstanceHour) -> Iterator[Item]:
    """Yield what is billed as long as the cluster exists, whatever its compute nodes do."""
    prices = load_base().prices
    yield from _head_node(settings, hour_of)
    yield from _login_nodes(settings, prices, hour_of)
    for part in (_network, _lustre, _efs, _accounting):
        yield from part(settings, prices)


def instances(count: int, root_gib: int, hour: Price | None, *, what: str, public: bool = False) -> Item:
    """Return the cost of instances that always run, with disks and addresses; `hour` is the price of one."""
    prices = load_base().prices
    if hour is None:
        return Item(what=what, usd_per_month=None, why_unknown="not in the catalog")
    by_hour = (hour, prices.public_ipv4_hour) if public else (hour,)
    disks = root_gib * prices.gp3_gb_month.usd
    return Item(
        what=what,
        usd_per_month=count * (hourly_month(prices, *by_hour).usd + disks),
        prices=(*by_hour, *((prices.gp3_gb_month,) if root_gib else ())),
    )


def _item(what: str, month: MonthlyCost | None) -> Item:
    if month is None:
        return Item(what=what, usd_per_month=None, why_unknown="not in the catalog")
    return Item(what=what, usd_per_month=month.usd, prices=month.prices)


def _head_node(settings: Settings, hour_of: InstanceHour) -> Iterator[Item]:
    root_gib, type_ = settings.head_root_gib or settings.family_facts.head_root_gib, settings.head_type
    what = f"head node {type_}, {root_gib} GiB"
    is_public = settings.public_access == "on"
    yield instances(1, root_gib, hour_of(type_), public=is_public, what=what)


def _login_nodes(settings: Settings, prices: Prices, hour_of: InstanceHour) -> Iterator[Item]:
    if count := settings.login_nodes:
        # The AMI decides how large their disks are, which is not known here: some 3 USD each.
        type_ = settings.login_type
        what = f"login nodes, {count} x {type_}"
        is_public = settings.public_access == "on"
        yield instances(count, 0, hour_of(type_), public=is_public, what=what)
        address = (prices.public_ipv4_hour,) if is_public else ()
        month = hourly_month(prices, prices.load_balancer_hour, *address)
        yield _item("load balancer of the login nodes", month)


def _nodes(settings: Settings) -> Iterator[Item]:
    for queue in settings.all_queues:
        yield from _nodes_of(queue)


def _nodes_of(queue: Queue) -> Iterator[Item]:
    for reserved in queue.reservations if queue.capacity_type != "capacity-block" else ():
        what, why = f"the reservation {reserved}", "billed whether used or not"
        yield Item(what=what, usd_per_month=None, why_unknown=why)
    for resource in queue.compute_resources:
        count, type_, kind = resource.min_count, resource.types[0].name, queue.capacity_of(resource)
        if count and kind == "spot":
            yield Item(what=f"{count} x {type_}", usd_per_month=None, why_unknown="at the spot price")
        elif count and kind == "ondemand":
            what = f"{count} x {type_} (min_nodes)"
            yield instances(count, queue.root_gib, instance_hour(type_), what=what)


def _network(settings: Settings, prices: Prices) -> Iterator[Item]:
    if settings.vpc_id:
        return
    yield _item("NAT gateway and its address", nat_gateway_month(prices))
    if settings.endpoints == "private":
        count = len(INTERFACE_ENDPOINTS)
        yield _item(f"{count} interface endpoints", interface_endpoints_month(prices, count))


def _lustre(settings: Settings, prices: Prices) -> Iterator[Item]:
    if settings.fsx_id:
        return
    durable, gib = settings.fsx_type == "persistent2", settings.fsx_gib
    type_ = "PERSISTENT_2" if durable else "SCRATCH_2"
    speed = f" at {settings.fsx_mbps_per_tib} MB/s a TiB" if durable else ", scratch2"
    month = lustre_month(prices, type_, gib=gib, mbps_per_tib=settings.fsx_mbps_per_tib)
    yield _item(f"FSx for Lustre, {gib} GiB{speed}", month)


def _efs(settings: Settings, prices: Prices) -> Iterator[Item]:
    if settings.efs_mibps and not settings.efs_id:
        month = efs_month(prices, mibps=settings.efs_mibps)
        yield _item(f"EFS at {settings.efs_mibps} MiB/s", month)


def _accounting(settings: Settings, prices: Prices) -> Iterator[Item]:
    if settings.accounting == "new":
        least = load_base().accounting_database.min_acu
        yield _item(f"accounting database, {least:g} ACU", aurora_month(prices, least))


def render_idle_cost(cost: IdleCost) -> str:
    """Render the total, its parts, and the age and the certainty of the prices."""
    prices, month = load_base().prices, cost.usd_per_month
    known = [item for item in cost.items if item.usd_per_month is not None]
    unknown = [f"{item.what} ({item.why_unknown})" for item in cost.items if item not in known]
    without = f", without {' and '.join(unknown)}" if unknown else ""
    width = max((len(item.what) for item in known), default=0)
    lines = [
        f"While no job runs this costs about {month:,.0f} USD a month, {month / DAYS_PER_MONTH:,.0f} a "
        f"day{without}:",
        *(f"  {item.what:{width}} {_shown(item)}" for item in known),
        f"On top comes what is stored and moved: a GB costs {prices.s3_gb_month.usd:.3f} a month in S3, "
        f"{prices.efs_gb_month.usd:.2f} in EFS, {prices.nat_gateway_gb.usd:.3f} through a NAT gateway.",
    ]
    if cost.dates:
        oldest, newest = cost.dates
        lines.append(f"List prices of {prices.region}, {oldest} to {newest}; your region may differ.")
    return "\n".join(lines)


def _shown(item: Item) -> str:
    return f"{item.usd_per_month:8,.0f}{'' if item.confirmed else '  (price unconfirmed)'}"
