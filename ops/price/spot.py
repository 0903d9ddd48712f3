"""What spot instances cost now, by EC2's own history."""

from __future__ import annotations

import datetime
from typing import Any

from training_cluster.catalog.prices import Price

SPOT = "spot price"


def spot_price(instance_type: str, *, zone: str | None, ec2: Any, now: datetime.datetime) -> Price | None:
    """What an hour costs now in a zone, by its name; in the dearest zone where it has none, or is not known.

    None where EC2 sells no such spot instance in the region. Raises botocore's errors.
    """
    pages = ec2.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=[instance_type],
        ProductDescriptions=["Linux/UNIX"],
        StartTime=now,  # each zone's price of then
    )
    newest: dict[str, tuple[datetime.datetime, float]] = {}
    for page in pages:
        for each in page["SpotPriceHistory"]:
            told = (each["Timestamp"], float(each["SpotPrice"]))
            newest[each["AvailabilityZone"]] = max(told, newest.get(each["AvailabilityZone"], told))
    if not newest:
        return None
    chosen = zone if zone in newest else max(newest, key=lambda each: newest[each][1])
    among = "" if chosen == zone else f", the dearest of {len(newest)} zone(s)"
    return Price(usd=newest[chosen][1], date=now.date(), source=f"{SPOT} in {chosen}{among},")
