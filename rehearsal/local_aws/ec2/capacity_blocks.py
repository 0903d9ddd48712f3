"""EC2 Capacity Blocks: free offerings in every zone that has the instance type.

Without a StartDateRange a block begins at once and is `active`. With one in the future it is
`scheduled` until then, and has no instances yet, as on AWS.
"""

import datetime
import uuid
from typing import Any

from rehearsal.local_aws.ec2.capacity_reservations import (
    BLOCK,
    RESERVATIONS,
    Reservation,
    in_utc,
    now,
    zones_with,
)
from rehearsal.local_aws.emulators import moto_actions
from rehearsal.local_aws.emulators.moto_actions import parameter
from rehearsal.local_aws.emulators.moto_types import ec2

# Tags that EC2 puts on the reservation of a block (pcluster/aws/aws_resources.py reads the first).
_COUNT_TAG = "aws:ec2capacityreservation:incrementalRequestedQuantity"
_KIND_TAG = "aws:ec2capacityreservation:capacityReservationType"

Offering = dict[str, Any]
_OFFERINGS: dict[str, Offering] = {}


def install() -> None:
    """Add the actions of Capacity Blocks."""
    moto_actions.add("ec2", describe_capacity_block_offerings, purchase_capacity_block)


def describe_capacity_block_offerings(self: Any) -> Any:
    """Answer DescribeCapacityBlockOfferings; a type that is not sold in blocks has none."""
    instance_type, hours = parameter(self, "InstanceType"), int(parameter(self, "CapacityDurationHours"))
    zones = zones_with(instance_type)
    [found] = ec2().describe_instance_types([instance_type])
    if BLOCK not in found.get("SupportedUsageClasses", []):
        zones = []
    start = in_utc(parameter(self, "StartDateRange")) or now()
    offerings = [
        {
            "CapacityBlockOfferingId": f"cb-{uuid.uuid4().hex[:17]}",
            "InstanceType": instance_type,
            "AvailabilityZone": zone,
            "InstanceCount": int(parameter(self, "InstanceCount", 1)),
            "StartDate": start,
            "EndDate": start + datetime.timedelta(hours=hours),
            "CapacityBlockDurationHours": hours,
            "UpfrontFee": "0.00",
            "CurrencyCode": "USD",
            "Tenancy": "default",
        }
        for zone in zones
    ]
    _OFFERINGS.update({offering["CapacityBlockOfferingId"]: offering for offering in offerings})
    return moto_actions.answer(CapacityBlockOfferings=offerings)


def purchase_capacity_block(self: Any) -> Any:
    """Answer PurchaseCapacityBlock."""
    id_ = parameter(self, "CapacityBlockOfferingId")
    if id_ not in _OFFERINGS:
        raise moto_actions.error(
            "InvalidCapacityBlockOfferingId.NotFound", f"The Capacity Block offering '{id_}' does not exist"
        )
    offering = _OFFERINGS.pop(id_)
    count = offering["InstanceCount"]
    block = Reservation(
        instance_type=offering["InstanceType"],
        zone=offering["AvailabilityZone"],
        count=count,
        kind=BLOCK,
        platform=parameter(self, "InstancePlatform"),
        match="targeted",
        tags=moto_actions.given_tags(self) | {_COUNT_TAG: str(count), _KIND_TAG: BLOCK},
        start=offering["StartDate"],
        end=offering["EndDate"],
    )
    RESERVATIONS[block.id] = block
    return moto_actions.answer(CapacityReservation=block.describe())
