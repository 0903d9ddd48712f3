"""Reads prices of instances from AWS: on demand from the Price List API, of spot instances from EC2."""

import datetime
import json
from collections.abc import Iterator, Mapping
from typing import Any

from ops.account.session import account_clients, every
from training_cluster.catalog.prices import Price

PRICE_LIST, SPOT = "Price List API", "spot price"
# The API has endpoints in few regions, each with the prices of all regions.
_REGION = "us-east-1"


def pricing_client() -> Any:
    """Return a client of the caller's account in a region that has the API."""
    return account_clients(_REGION)("pricing")


def list_price(instance_type: str, *, region: str, pricing: Any) -> Price | None:
    """Return the on-demand price of an hour with Linux and shared tenancy; None without such a product.

    Raises botocore's errors.
    """
    wanted = {
        "instanceType": instance_type,
        "regionCode": region,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "marketoption": "OnDemand",  # excludes Capacity Blocks
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    answer = pricing.get_products(ServiceCode="AmazonEC2", Filters=filters)
    found = {price for product in answer["PriceList"] for price in _hours(json.loads(product))}
    # The list may have the same product twice at one price, as with and without a licence of your own.
    return max(found, key=lambda each: each.date) if len({each.usd for each in found}) == 1 else None


def _hours(product: Mapping[str, Any]) -> Iterator[Price]:
    for offer in product["terms"].get("OnDemand", {}).values():
        for dimension in offer["priceDimensions"].values():
            usd = float(dimension["pricePerUnit"].get("USD", 0))
            if dimension["unit"] == "Hrs" and usd:
                date = datetime.date.fromisoformat(offer["effectiveDate"][:10])
                yield Price(usd=usd, date=date, source=PRICE_LIST)


def spot_price(instance_type: str, *, zone: str | None, ec2: Any, now: datetime.datetime) -> Price | None:
    """Return the present price of an hour in a zone, given by name, or else in the most expensive zone.

    None if EC2 has no such spot instance in the region. Raises botocore's errors.
    """
    prices = spot_prices(instance_type, ec2=ec2, now=now)
    if not prices:
        return None
    chosen = zone if zone in prices else max(prices, key=lambda each: prices[each])
    among = "" if chosen == zone else f", the most expensive of {len(prices)} zone(s)"
    return Price(usd=prices[chosen], date=now.date(), source=f"{SPOT} in {chosen}{among},")


def spot_prices(instance_type: str, *, ec2: Any, now: datetime.datetime) -> dict[str, float]:
    """Return the present prices of an hour, by the names of the region's zones. Raises botocore's errors."""
    history = every(
        *(ec2, "describe_spot_price_history", "SpotPriceHistory"),
        InstanceTypes=[instance_type],
        ProductDescriptions=["Linux/UNIX"],
        StartTime=now,  # returns each zone's price at this time
    )
    newest: dict[str, tuple[datetime.datetime, float]] = {}
    for each in history:
        price = (each["Timestamp"], float(each["SpotPrice"]))
        newest[each["AvailabilityZone"]] = max(price, newest.get(each["AvailabilityZone"], price))
    return {zone: usd for zone, (_, usd) in newest.items()}
