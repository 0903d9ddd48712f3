"""Plays EC2 and CloudFormation for the zone's custom resource: a region in memory."""

# ruff: noqa: N803 - boto3's own argument names
from __future__ import annotations

import importlib
import sys
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

CODE = Path(__file__).resolve().parents[2] / "assets" / "compute_zone"

STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/NetworkStack/1"
RESERVATION = "cr-0123456789abcdef0"


def zone(id_: str, name: str, *, state: str = "available", kind: str = "availability-zone") -> dict[str, str]:
    """Describe a zone as EC2 does."""
    return {"ZoneId": id_, "ZoneName": name, "State": state, "ZoneType": kind}


@dataclass
class FakeRegion:
    """us-east-1 with few zones: a has use1-az6, as in many accounts, so names and ids sort differently."""

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
    stack_status: str = "UPDATE_IN_PROGRESS"
    throttled: set[str] = field(default_factory=set)
    """Calls that are refused for good."""
    options: list[Any] = field(default_factory=list)
    """`config` of every client that was asked for."""

    def client(self, service: str, *, config: Any) -> types.SimpleNamespace:
        """Play boto3.client."""
        self.options.append(config)
        if service == "cloudformation":
            return types.SimpleNamespace(describe_stacks=self._describe_stacks)
        return types.SimpleNamespace(
            meta=types.SimpleNamespace(region_name="us-east-1"),
            describe_availability_zones=self._describe_availability_zones,
            describe_capacity_reservations=self._describe_capacity_reservations,
            get_paginator=lambda name: types.SimpleNamespace(paginate=getattr(self, f"_{name}")),
        )

    def _answered(self, call: str) -> None:
        if call in self.throttled:
            raise ClientError({"Error": {"Code": "RequestLimitExceeded", "Message": "Too many"}}, call)

    def _describe_stacks(self, *, StackName: str) -> dict[str, Any]:
        self._answered("DescribeStacks")
        assert StackName == STACK
        return {"Stacks": [{"StackStatus": self.stack_status}]}

    def _describe_availability_zones(self) -> dict[str, Any]:
        self._answered("DescribeAvailabilityZones")
        return {"AvailabilityZones": self.zones}

    def _describe_instance_type_offerings(
        self, *, LocationType: str, Filters: list[dict[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """One offering a page."""
        self._answered("DescribeInstanceTypeOfferings")
        assert LocationType == "availability-zone-id"
        ((wanted,),) = (each["Values"] for each in Filters if each["Name"] == "instance-type")
        for location in self.offers.get(wanted, []):
            yield {"InstanceTypeOfferings": [{"InstanceType": wanted, "Location": location}]}

    def _describe_capacity_reservations(self, *, CapacityReservationIds: list[str]) -> dict[str, Any]:
        self._answered("DescribeCapacityReservations")
        (id_,) = CapacityReservationIds
        if id_ not in self.reservations:
            code = "InvalidCapacityReservationId.NotFound"
            raise ClientError({"Error": {"Code": code, "Message": "no such"}}, "DescribeCapacityReservations")
        return {"CapacityReservations": [self.reservations[id_]]}


def load() -> Any:
    """Import the function's entry by the plain names that its modules use, and leave no trace of it."""
    names = [path.stem for path in CODE.glob("*.py")]
    former = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "dont_write_bytecode", True)  # it would lie in the function's code
            patch.syspath_prepend(str(CODE))
            return importlib.import_module("handler")
    finally:
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(former)
