"""Charges: the billed resources with their cost, from flags or from existing resources, and their table."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from training_cluster.catalog.prices import Price, Prices

NO_PRICE = "price not in the catalog"


@dataclass(frozen=True, kw_only=True)
class Charge:
    """One thing that is billed, whether used or not."""

    what: str
    usd_per_month: float | None
    """Cost of a month; None if it is unknown, with the reason in `note`."""
    prices: tuple[Price, ...] = ()
    """List prices that the cost was computed from."""
    note: str = ""

    @property
    def usd(self) -> float:
        """Cost of a month in a sum, which leaves out what is unknown."""
        return self.usd_per_month or 0

    @property
    def confirmed(self) -> bool:
        """True if a source confirms each price."""
        return all(price.confirmed for price in self.prices)


def dearest_first(charges: Iterable[Charge]) -> tuple[Charge, ...]:
    """Sort charges by their cost; those with an unknown one are last."""
    return tuple(sorted(charges, key=lambda charge: -charge.usd))


def render_charges(charges: Iterable[Charge]) -> Iterator[str]:
    """Yield a line for each charge: the cost of a month, and doubts."""
    listed = list(charges)
    width = max((len(each.what) for each in listed), default=0)
    for each in listed:
        shown = "-" if each.usd_per_month is None else f"{each.usd:,.0f}"
        notes = "; ".join(filter(None, ("" if each.confirmed else "price unconfirmed", each.note)))
        yield f"  {each.what:{width}} {shown:>8}  {notes}".rstrip()


def by_hour(what: str, prices: Prices, *hours: Price, count: float = 1) -> Charge:
    """Return the charge of `count` things that are billed by the hour, each at the sum of the prices."""
    usd = count * sum(price.usd for price in hours) * prices.hours_per_month
    return Charge(what=what, usd_per_month=usd, prices=hours)


def nat_gateway(prices: Prices, what: str = "NAT gateway and its address") -> Charge:
    """Return the charge of a NAT gateway and its public address."""
    return by_hour(what, prices, prices.nat_gateway_hour, prices.public_ipv4_hour)


def interface_endpoints(prices: Prices, count: int) -> Charge:
    """Return the charge of interface endpoints; one in two zones counts twice."""
    return by_hour(f"{count} interface endpoints", prices, prices.interface_endpoint_hour, count=count)


def aurora(what: str, prices: Prices, acu: float) -> Charge:
    """Return the charge of an Aurora Serverless database that stays at `acu` capacity units."""
    return by_hour(what, prices, prices.aurora_acu_hour, count=acu)


def lustre(
    what: str, prices: Prices, deployment_type: str, *, gib: int, mbps_per_tib: int | str | None
) -> Charge:
    """Return the charge of a file system of a type that FSx's API names."""
    price = prices.lustre_gb_month(deployment_type, mbps_per_tib)
    if price is None:
        return Charge(what=what, usd_per_month=None, note=NO_PRICE)
    return Charge(what=what, usd_per_month=gib * price.usd, prices=(price,))


def efs(what: str, prices: Prices, *, gib: float = 0, mibps: float = 0) -> Charge:
    """Return the charge of `gib` GiB stored and of `mibps` MiB/s of provisioned throughput."""
    stored, provisioned = prices.efs_gb_month, prices.efs_mibps_month
    return Charge(
        what=what,
        usd_per_month=gib * stored.usd + mibps * provisioned.usd,
        prices=(*((stored,) if gib else ()), *((provisioned,) if mibps else ())),
    )
