"""Reads present prices of spot instances from EC2's price history."""

import datetime
from typing import Any

from training_cluster.catalog.prices import Price

SPOT = "spot price"


def spot_price(instance_type: str, *, zone: str | None, ec2: Any, now: datetime.datetime) -> Price | None:
    """Return the present price of an hour in a zone, given by name, or else in the most expensive zone.

    None if EC2 has no such spot instance in the region. Raises botocore's errors.
    """
    pages = ec2.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=[instance_type],
        ProductDescriptions=["Linux/UNIX"],
        StartTime=now,  # returns each zone's price at this time
    )
    newest: dict[str, tuple[datetime.datetime, float]] = {}
    for page in pages:
        for each in page["SpotPriceHistory"]:
            price = (each["Timestamp"], float(each["SpotPrice"]))
            newest[each["AvailabilityZone"]] = max(price, newest.get(each["AvailabilityZone"], price))
    if not newest:
        return None
    chosen = zone if zone in newest else max(newest, key=lambda each: newest[each][1])
    among = "" if chosen == zone else f", the most expensive of {len(newest)} zone(s)"
    return Price(usd=newest[chosen][1], date=now.date(), source=f"{SPOT} in {chosen}{among},")
