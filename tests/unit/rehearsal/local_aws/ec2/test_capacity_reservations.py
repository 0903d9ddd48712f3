"""Capacity Blocks of the local EC2, by the clock; `make validate` has the library's view of reservations."""

import datetime
from collections.abc import Callable
from typing import Any

TYPE = "p5.48xlarge"


def test_a_block_has_instances_in_its_time(client: Callable[[str], Any]) -> None:
    ec2, days = client("ec2"), datetime.timedelta(days=3)
    states = []
    for when in ({}, {"StartDateRange": datetime.datetime.now(datetime.UTC) + days}):
        wanted = {"InstanceType": TYPE, "InstanceCount": 2, "CapacityDurationHours": 24, **when}
        offer = ec2.describe_capacity_block_offerings(**wanted)["CapacityBlockOfferings"][0]
        made = ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
        )["CapacityReservation"]
        states.append((made["State"], made["TotalInstanceCount"]))
    assert states == [("active", 2), ("scheduled", 0)]
