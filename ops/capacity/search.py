"""Asks EC2 where nodes of one type can be had. A call that AWS refuses hides no other."""

import datetime
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from botocore.exceptions import ClientError, ConnectionError, HTTPClientError

from ops.account.session import ClientOf, every
from ops.preflight.not_checked import not_checked
from ops.price.price_list import list_price, spot_prices
from training_cluster.catalog.families import instance_hour, load_base
from training_cluster.flags.settings import Settings

MOST_OF_BLOCK = 64
"""Instances of a Capacity Block; longer ones than FINE_DAYS have whole weeks, MOST_DAYS at most (EC2 API
reference, DescribeCapacityBlockOfferings)."""
FINE_DAYS, MOST_DAYS = 14, 182
LINUX = "Linux/UNIX"
"""Platform of the nodes, whose tenancy is the default one."""
_STATES = ("active", "scheduled", "pending")
ORDER = ("reservation", "capacity-block", "block to buy", "spot", "ondemand", "not known")
"""Ways to get nodes: what is the account's already first."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Nodes and the time for which they are needed."""

    settings: Settings
    """Flags of the nodes: family, type and number."""
    days: int

    @property
    def type(self) -> str:
        """Instance type of the nodes."""
        return self.settings.compute_type

    def flags(self, zone: str, most: int = 0) -> str:
        """Return the flags of the nodes in a zone, of `most` nodes if that is fewer, but not 0."""
        settings = self.settings
        is_main = self.type == settings.family_facts.main_size
        size = f"family={settings.family}" if is_main else f"instance_type={self.type}"
        return f"-c {size} -c nodes={min(settings.nodes, most or settings.nodes)} -c zone={zone}"

    def usd(self, hour: float) -> float:
        """Return the cost of all nodes for the whole time, of a price of one node and hour."""
        return hour * self.settings.nodes * self.days * 24


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A way to get nodes in a zone, or what is not known of one."""

    region: str
    zone: str
    """Id of the zone; "" for the whole region."""
    how: str
    """One of ORDER."""
    found: str
    usd: float | None = None
    """Cost of all nodes for the whole time; None if it is paid already, or not known."""
    type: str = ""
    """Flags or commands to type."""


@dataclass(frozen=True, kw_only=True)
class _Region:
    name: str
    ec2: Any
    zones: dict[str, str]
    """Ids of the zones by their names in this account."""

    def zone(self, found: dict[str, Any]) -> str:
        """Return the id of the zone of an answer."""
        name = str(found.get("AvailabilityZone", ""))
        return str(found.get("AvailabilityZoneId") or self.zones.get(name, name))


def search(
    wanted: Wanted,
    regions: Iterable[str],
    *,
    clients: Callable[[str], ClientOf],
    pricing: Callable[[], Any],
    starts: Callable[[str], None] = lambda _: None,
) -> list[Offer]:
    """Ask all regions; return the offers, what is the account's already first, then the cheapest.

    Args:
        clients: returns the clients of a region; pricing, a client of the Price List API.
        starts: is called with the name of each region before it is asked.

    Raises:
        botocore's BotoCoreError: there are no credentials, or the first region cannot be reached.
    """
    found: list[Offer] = []
    for region in regions:
        starts(region)
        try:
            found += _in_region(wanted, region, clients(region)("ec2"), pricing)
        except (ConnectionError, HTTPClientError) as error:  # botocore's
            if not found:
                raise
            found.append(Offer(region=region, zone="", how="not known", found=str(error)))
    groups = (0, 0, 1, 1, 1, 2)
    place = dict(zip(ORDER, groups, strict=True))
    return sorted(found, key=lambda each: (place[each.how], each.usd is None, each.usd or 0, each.zone))


def _in_region(wanted: Wanted, name: str, ec2: Any, pricing: Callable[[], Any]) -> Iterator[Offer]:
    try:
        listed = ec2.describe_availability_zones()["AvailabilityZones"]
    except ClientError as error:  # a region that the account has not enabled
        yield _not_known(name, "zones", error)
        return
    region = _Region(name=name, ec2=ec2, zones={each["ZoneName"]: each["ZoneId"] for each in listed})
    sold = wanted.settings.family_facts.capacity_of(wanted.type)
    yield from _isolated(name, "reservations", lambda: _reservations(wanted, region))
    if "capacity-block" in sold:
        yield from _isolated(name, "Capacity Blocks", lambda: _blocks(wanted, region))
    if "spot" in sold:
        yield from _spot(wanted, region)
    yield from _isolated(name, "zones with the type", lambda: _on_demand(wanted, region, pricing))


def _isolated(region: str, what: str, ask: Callable[[], Iterable[Offer]]) -> list[Offer]:
    try:
        return list(ask())
    except ClientError as error:
        return [_not_known(region, what, error)]


def _not_known(region: str, what: str, error: ClientError) -> Offer:
    why = _reason(error)
    return Offer(region=region, zone="", how="not known", found=f"{what}: {why}")


def _reason(error: ClientError) -> str:
    return not_checked("", error).found.removeprefix("not checked: ")


def _reservations(wanted: Wanted, region: _Region) -> Iterator[Offer]:
    filters = [
        {"Name": "instance-type", "Values": [wanted.type]},
        {"Name": "state", "Values": [*_STATES]},
    ]
    operation = ("describe_capacity_reservations", "CapacityReservations")
    for each in every(region.ec2, *operation, Filters=filters):
        if (each.get("Tenancy", "default"), each.get("InstancePlatform", LINUX)) != ("default", LINUX):
            continue  # no node can use it
        how = "capacity-block" if each.get("ReservationType") == "capacity-block" else "reservation"
        id_, zone, total = each["CapacityReservationId"], region.zone(each), each["TotalInstanceCount"]
        begins = (
            f" from {_utc(each['StartDate'])}" if each["State"] != "active" and each.get("StartDate") else ""
        )
        ends = f" until {_utc(each['EndDate'])}" if each.get("EndDate") else ""
        idle = f"{each['AvailableInstanceCount']} of {total} idle"
        yield Offer(
            region=region.name,
            zone=zone,
            how=how,
            found=f"{each['State']}{begins}{ends}, {idle}",
            type=f"{wanted.flags(zone, total)} -c capacity={how}:{id_}",
        )


def _blocks(wanted: Wanted, region: _Region) -> Iterator[Offer]:
    nodes = wanted.settings.nodes
    count, days = min(nodes, MOST_OF_BLOCK), min(wanted.days, MOST_DAYS)
    if days > FINE_DAYS:
        days = -(-days // 7) * 7
    asked = {"InstanceType": wanted.type, "InstanceCount": count, "CapacityDurationHours": days * 24}
    offerings = every(region.ec2, "describe_capacity_block_offerings", "CapacityBlockOfferings", **asked)
    found = False
    for each in offerings:
        found, zone = True, region.zone(each)
        few = f" ({count} nodes are the most of a block)" if count < nodes else ""
        yield Offer(
            region=region.name,
            zone=zone,
            how="block to buy",
            found=f"{each['InstanceCount']} nodes{few}, {_utc(each['StartDate'])} to {_utc(each['EndDate'])}",
            usd=float(each["UpfrontFee"]) if each.get("CurrencyCode", "USD") == "USD" else None,
            type=f"aws ec2 purchase-capacity-block --region {region.name} --instance-platform {LINUX} "
            f"--capacity-block-offering-id {each['CapacityBlockOfferingId']}, "
            f"then {wanted.flags(zone, count)} -c capacity=capacity-block:cr-...",
        )
    if not found:
        words = f"Capacity Blocks: none of {count} nodes for {days} days"
        yield Offer(region=region.name, zone="", how="not known", found=words)


def _spot(wanted: Wanted, region: _Region) -> Iterator[Offer]:
    """Yield the zones with a price or a score; each says which of the two is not known."""
    scores: dict[str, int] = {}
    prices: dict[str, float] = {}
    refused = []
    try:
        listed = every(
            region.ec2,
            "get_spot_placement_scores",
            "SpotPlacementScores",
            InstanceTypes=[wanted.type],
            TargetCapacity=wanted.settings.nodes,
            SingleAvailabilityZone=True,
            RegionNames=[region.name],
        )
        scores = {each["AvailabilityZoneId"]: each["Score"] for each in listed}
    except ClientError as error:
        refused.append(f"score: {_reason(error)}")
    try:
        now = datetime.datetime.now(datetime.UTC)
        named = spot_prices(wanted.type, ec2=region.ec2, now=now)
        prices = {region.zones.get(name, name): usd for name, usd in named.items()}
    except ClientError as error:
        refused.append(f"price: {_reason(error)}")
    for zone in sorted({*scores, *prices}) or [""] * bool(refused):
        score = [f"score {scores[zone]} of 10"] if zone in scores else []
        yield Offer(
            region=region.name,
            zone=zone,
            how="spot",
            found="; ".join([*score, *refused]) or "no score",
            usd=wanted.usd(prices[zone]) if zone in prices else None,
            type=f"{wanted.flags(zone)} -c capacity=spot" if zone else "",
        )


def _on_demand(wanted: Wanted, region: _Region, pricing: Callable[[], Any]) -> Iterator[Offer]:
    filters = [{"Name": "instance-type", "Values": [wanted.type]}]
    asked = {"LocationType": "availability-zone-id", "Filters": filters}
    offered = every(region.ec2, "describe_instance_type_offerings", "InstanceTypeOfferings", **asked)
    zones = sorted(str(each["Location"]) for each in offered)
    if not zones:
        words = f"no zone offers {wanted.type}"
        yield Offer(region=region.name, zone="", how="not known", found=words)
        return
    price, note = _hour(wanted.type, region.name, pricing)
    one = Offer(
        region=region.name,
        zone="",
        how="ondemand",
        found=f"offered; EC2 says at the launch whether it has them{note}",
        usd=None if price is None else wanted.usd(price),
    )
    for zone in zones:
        yield replace(one, zone=zone, type=wanted.flags(zone))


def _hour(instance_type: str, region: str, pricing: Callable[[], Any]) -> tuple[float | None, str]:
    """Return the on-demand price, and why it is the catalog's or not known."""
    try:
        if price := list_price(instance_type, region=region, pricing=pricing()):
            return price.usd, ""
        why = "the Price List has none"
    except ClientError as error:
        why = _reason(error)
    known = instance_hour(instance_type) if region == load_base().prices.region else None
    return (known.usd, f"; price of the catalog ({why})") if known else (None, f"; price: {why}")


def _utc(when: datetime.datetime) -> str:
    return f"{when.astimezone(datetime.UTC):%Y-%m-%d %H:%M}"
