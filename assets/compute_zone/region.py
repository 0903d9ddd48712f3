"""AWS's answers about a region: its zones, their instance types and databases, the zones of reservations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

# A region's quota of Describe calls is shared by everybody in the account.
_RETRIES = Config(retries={"mode": "standard", "max_attempts": 10})
_UNKNOWN = ("InvalidCapacityReservationId", "NotFoundException", "BadRequestException")
"""Beginnings of the codes of errors for a reservation, or a resource group, that does not exist."""
_GONE = ("cancelled", "expired", "failed", "unsupported")


def _make_client(service: str) -> Any:
    return boto3.client(service, config=_RETRIES)  # type: ignore[call-overload]


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

    def __init__(self, client: Callable[[str], Any] | None = None) -> None:
        self._client = client or _make_client
        self._ec2 = self._client("ec2")
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

    def reservations(self, id_: str) -> list[dict[str, Any]] | None:
        """Return a reservation or Capacity Block (cr-...), or those of a resource group (its ARN).

        None without one of this id.
        """
        try:
            if id_.startswith("arn:"):
                pages = self._client("resource-groups").get_paginator("list_group_resources")
                listed = [each for page in pages.paginate(Group=id_) for each in page.get("Resources", [])]
                members = [each["Identifier"]["ResourceArn"].rpartition("/")[2] for each in listed]
                ids = [each for each in members if each.startswith("cr-")]
                return [found for each in ids for found in self.reservations(each) or ()]
            answer = self._ec2.describe_capacity_reservations(CapacityReservationIds=[id_])
        except ClientError as error:
            if error.response["Error"]["Code"].startswith(_UNKNOWN):
                return None
            raise
        found: list[dict[str, Any]] = answer["CapacityReservations"]
        return found

    def launches_into(self, id_: str) -> bool:
        """Return False for a resource group without the configuration by which instances launch into it.

        ParallelCluster refuses it (CapacityReservationResourceGroupValidator).
        """
        if not id_.startswith("arn:"):
            return True
        try:
            answer = self._client("resource-groups").get_group_configuration(Group=id_)
        except ClientError as error:
            if error.response["Error"]["Code"].startswith(_UNKNOWN):
                return False
            raise
        types = [each["Type"] for each in answer.get("GroupConfiguration", {}).get("Configuration", [])]
        return any("CapacityReservationPool" in each for each in types)

    def zones_of_reservation(self, id_: str, instance_types: Iterable[str]) -> list[str] | None:
        """Return ids or names of the zones of a reservation, or of a group's that serve an instance type."""
        found, types = self.reservations(id_), set(instance_types)
        if found is None:
            return None
        if id_.startswith("arn:"):
            found = [e for e in found if e["InstanceType"] in types and e.get("State") not in _GONE]
        # The id is also right for a reservation that another account shares: names differ between accounts.
        return sorted({e.get("AvailabilityZoneId") or e["AvailabilityZone"] for e in found})

    @cached_property
    def zone_names_with_databases(self) -> frozenset[str]:
        """Names of the zones that offer the accounting database's class; all of them without an answer."""
        pages = self._client("rds").get_paginator("describe_orderable_db_instance_options")
        try:
            options = [
                option
                for page in pages.paginate(Engine="aurora-mysql", DBInstanceClass="db.serverless")
                for option in page["OrderableDBInstanceOptions"]
            ]
        except (BotoCoreError, ClientError) as error:  # most networks never have a database
            print(f"the zones of databases are not known: {error}")
            options = []
        found = frozenset(zone["Name"] for each in options for zone in each.get("AvailabilityZones", []))
        return found or frozenset(zone.name for zone in self.zones)


def describe_stack(stack_id: str) -> tuple[bool, dict[str, str]]:
    """Ask CloudFormation if the resource's stack rolls back, and for its outputs before the update.

    At UPDATE_ROLLBACK_COMPLETE, from which an update begins, it does not.
    """
    cloudformation = boto3.client("cloudformation", config=_RETRIES)
    stack = cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]
    outputs = {each["OutputKey"]: each["OutputValue"] for each in stack.get("Outputs", [])}
    return str(stack["StackStatus"]) == "UPDATE_ROLLBACK_IN_PROGRESS", outputs
