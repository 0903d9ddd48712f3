"""AWS's answers about a region: its zones, their instance types, the zone of a reservation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

# A region's quota of Describe calls is shared by everybody in the account.
_RETRIES = Config(retries={"mode": "standard", "max_attempts": 10})
_UNKNOWN_RESERVATION = "InvalidCapacityReservationId"


@dataclass(frozen=True)
class Zone:
    """One availability zone; its name depends on the account, its id does not."""

    id: str
    name: str
    available: bool = True

    def __str__(self) -> str:
        return f"{self.id} ({self.name})"


class Region:
    """The region that the function runs in, or a client's. AWS is asked once for each answer."""

    def __init__(self, ec2: Any = None) -> None:
        self._ec2 = ec2 or boto3.client("ec2", config=_RETRIES)
        self.name: str = self._ec2.meta.region_name
        self._offered: dict[str, frozenset[str]] = {}

    @cached_property
    def zones(self) -> tuple[Zone, ...]:
        """The region's zones for this account, sorted by id, without local zones."""
        found = self._ec2.describe_availability_zones()["AvailabilityZones"]
        return tuple(
            sorted(
                (
                    Zone(each["ZoneId"], each["ZoneName"], each["State"] == "available")
                    for each in found
                    if each["ZoneType"] == "availability-zone"
                ),
                key=lambda zone: zone.id,
            )
        )

    def zone_ids_with(self, instance_type: str) -> frozenset[str]:
        """Return the ids of the zones that offer an instance type; empty for one that EC2 does not know."""
        if instance_type not in self._offered:
            pages: Iterable[dict[str, Any]] = self._ec2.get_paginator(
                "describe_instance_type_offerings"
            ).paginate(
                LocationType="availability-zone-id",
                Filters=[{"Name": "instance-type", "Values": [instance_type]}],
            )
            self._offered[instance_type] = frozenset(
                each["Location"] for page in pages for each in page["InstanceTypeOfferings"]
            )
        return self._offered[instance_type]

    def zone_of_reservation(self, reservation_id: str) -> str | None:
        """Return id or name of the zone of a capacity reservation or Capacity Block; None without it."""
        try:
            found = self._ec2.describe_capacity_reservations(CapacityReservationIds=[reservation_id])
        except ClientError as error:
            if error.response["Error"]["Code"].startswith(_UNKNOWN_RESERVATION):
                return None
            raise
        (reservation,) = found["CapacityReservations"]
        # The id is also right for a reservation that another account shares: names differ between accounts.
        zone: str = reservation.get("AvailabilityZoneId") or reservation["AvailabilityZone"]
        return zone


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The stack of the custom resource, during an update."""

    rolls_back: bool
    """True while the stack rolls back; False at UPDATE_ROLLBACK_COMPLETE, from which an update begins."""
    outputs: Mapping[str, str]
    """The stack's outputs before the update."""


def describe_stack(stack_id: str) -> Stack:
    """Ask CloudFormation for the state of a stack."""
    cloudformation = boto3.client("cloudformation", config=_RETRIES)
    stack = cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]
    return Stack(
        rolls_back=str(stack["StackStatus"]) == "UPDATE_ROLLBACK_IN_PROGRESS",
        outputs={each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])},
    )
