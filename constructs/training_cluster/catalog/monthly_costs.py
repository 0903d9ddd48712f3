"""The monthly cost of what is billed while no job runs, computed alike from flags and from what exists."""

from __future__ import annotations

from dataclasses import dataclass

from training_cluster.catalog.prices import Price, Prices


@dataclass(frozen=True, kw_only=True)
class MonthlyCost:
    """An amount, and the list prices that it was computed from."""

    usd: float
    prices: tuple[Price, ...]

    @property
    def confirmed(self) -> bool:
        """True if a source confirms each price."""
        return all(price.confirmed for price in self.prices)


def hourly_month(prices: Prices, *by_hour: Price, count: float = 1) -> MonthlyCost:
    """Return the cost of `count` things that are billed by the hour, each at the sum of the prices."""
    usd = count * sum(price.usd for price in by_hour) * prices.hours_per_month
    return MonthlyCost(usd=usd, prices=by_hour)


def nat_gateway_month(prices: Prices) -> MonthlyCost:
    """Return the cost of a NAT gateway and its public address."""
    return hourly_month(prices, prices.nat_gateway_hour, prices.public_ipv4_hour)


def interface_endpoints_month(prices: Prices, count: int) -> MonthlyCost:
    """Return the cost of interface endpoints; one in two zones counts twice."""
    return hourly_month(prices, prices.interface_endpoint_hour, count=count)


def aurora_month(prices: Prices, acu: float) -> MonthlyCost:
    """Return the cost of an Aurora Serverless database that stays at `acu` capacity units."""
    return hourly_month(prices, prices.aurora_acu_hour, count=acu)


def lustre_month(
    prices: Prices, deployment_type: str, *, gib: int, mbps_per_tib: int | str | None
) -> MonthlyCost | None:
    """Return the cost of a file system of a type that FSx's API names; None if its price is unknown."""
    price = prices.lustre_gb_month(deployment_type, mbps_per_tib)
    return MonthlyCost(usd=gib * price.usd, prices=(price,)) if price else None


def efs_month(prices: Prices, *, gib: float = 0, mibps: float = 0) -> MonthlyCost:
    """Return the cost of `gib` GiB stored and of `mibps` MiB/s of provisioned throughput."""
    stored, provisioned = prices.efs_gb_month, prices.efs_mibps_month
    return MonthlyCost(
        usd=gib * stored.usd + mibps * provisioned.usd,
        prices=(*((stored,) if gib else ()), *((provisioned,) if mibps else ())),
    )
