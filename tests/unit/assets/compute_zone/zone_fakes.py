"""Fakes of EC2 and CloudFormation for the zone's custom resource: a region in memory."""

# ruff: noqa: N803 - boto3's own argument names
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.unit.assets import function_fakes

STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/TrainingCluster-Network/1"
RESERVATION = "cr-0123456789abcdef0"


def zone(id_: str, name: str, *, state: str = "available", kind: str = "availability-zone") -> dict[str, str]:
    """Describe a zone as EC2 does."""
    return {"ZoneId": id_, "ZoneName": name, "State": state, "ZoneType": kind}


@dataclass
class FakeRegion(function_fakes.FakeRegion):
    """us-east-1 with few zones: a has use1-az6, as in many accounts, so names and ids sort differently."""

    stack_id: str = STACK
    zones: list[dict[str, str]] = field(
        default_factory=lambda: [
            zone("use1-az6", "us-east-1a"),
            zone("use1-az1", "us-east-1b"),
            zone("use1-az4", "us-east-1d"),
            zone("use1-atl1-az1", "us-east-1-atl-1a", kind="local-zone"),
        ]
    )
    offers: dict[str, list[str]] = field(
        default_factory=lambda: {
            "c5.4xlarge": ["use1-az1", "use1-az4", "use1-az6"],
            "trn1.32xlarge": ["use1-atl1-az1", "use1-az6", "use1-az4"],
            "p6.48xlarge": ["use1-az6"],
        }
    )
    reservations: dict[str, dict[str, str]] = field(default_factory=dict)

    def ec2(self) -> types.SimpleNamespace:
        """Return the fake calls of EC2."""
        return types.SimpleNamespace(
            meta=types.SimpleNamespace(region_name="us-east-1"),
            describe_availability_zones=self._describe_availability_zones,
            describe_capacity_reservations=self._describe_capacity_reservations,
            get_paginator=lambda name: types.SimpleNamespace(paginate=getattr(self, f"_{name}")),
        )

    def _describe_availability_zones(self) -> dict[str, Any]:
        self.answers("DescribeAvailabilityZones")
        return {"AvailabilityZones": self.zones}

    def _describe_instance_type_offerings(
        self, *, LocationType: str, Filters: list[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Return one offering per page."""
        self.answers("DescribeInstanceTypeOfferings")
        assert LocationType == "availability-zone-id"
        ((wanted,),) = (each["Values"] for each in Filters if each["Name"] == "instance-type")
        for location in self.offers.get(wanted, []):
            yield {"InstanceTypeOfferings": [{"InstanceType": wanted, "Location": location}]}

    def _describe_capacity_reservations(self, *, CapacityReservationIds: list[str]) -> dict[str, Any]:
        self.answers("DescribeCapacityReservations")
        (id_,) = CapacityReservationIds
        if id_ not in self.reservations:
            code = "InvalidCapacityReservationId.NotFound"
            raise function_fakes.refused("DescribeCapacityReservations", code, "no such")
        return {"CapacityReservations": [self.reservations[id_]]}
