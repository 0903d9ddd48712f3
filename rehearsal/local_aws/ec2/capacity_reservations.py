"""EC2 capacity reservations, which moto lacks: answers from records, without reserved capacity."""

import datetime
import uuid
from dataclasses import dataclass, field
from typing import Any

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.ec2 import placement_groups
from rehearsal.local_aws.emulators import hooks, moto_actions
from rehearsal.local_aws.emulators.moto_actions import parameter
from rehearsal.local_aws.emulators.moto_types import ec2

BLOCK = "capacity-block"


def now() -> datetime.datetime:
    """Return the current time in UTC."""
    return datetime.datetime.now(datetime.UTC)


def in_utc(time: datetime.datetime | None) -> datetime.datetime | None:
    """Add UTC to a time of a request, which moto parses without its zone."""
    return time.replace(tzinfo=datetime.UTC) if time and time.tzinfo is None else time


@dataclass(kw_only=True)
class Reservation:
    """One capacity reservation, or one purchased Capacity Block."""

    instance_type: str
    zone: str
    count: int
    kind: str = "default"
    """Type of the reservation: `default` or `capacity-block`."""
    platform: str = "Linux/UNIX"
    match: str = "open"
    placement_group_arn: str | None = None
    tags: dict[str, str] = field(default_factory=dict)
    start: datetime.datetime = field(default_factory=now)
    end: datetime.datetime | None = None
    cancelled: bool = False
    created: datetime.datetime = field(default_factory=now)
    id: str = field(default_factory=lambda: f"cr-{uuid.uuid4().hex[:17]}")

    @property
    def state(self) -> str:
        """Current state; a block begins and ends by the clock."""
        if self.cancelled:
            return "cancelled"
        if self.end and self.end <= now():
            return "expired"
        return "active" if self.start <= now() else "scheduled"

    def describe(self) -> dict[str, Any]:
        """Return its entry in DescribeCapacityReservations; a scheduled block has no instances yet."""
        count = self.count if self.state == "active" else 0
        described = {
            "CapacityReservationId": self.id,
            "CapacityReservationArn": f"arn:aws:ec2:{REGION}:{ACCOUNT}:capacity-reservation/{self.id}",
            "OwnerId": ACCOUNT,
            "InstanceType": self.instance_type,
            "InstancePlatform": self.platform,
            "AvailabilityZone": self.zone,
            "AvailabilityZoneId": zone_id(self.zone),
            "Tenancy": "default",
            "TotalInstanceCount": count,
            "AvailableInstanceCount": count,
            "EbsOptimized": False,
            "EphemeralStorage": False,
            "State": self.state,
            "StartDate": self.start,
            "EndDate": self.end,
            "EndDateType": "limited" if self.end else "unlimited",
            "InstanceMatchCriteria": self.match,
            "CreateDate": self.created,
            "Tags": moto_actions.listed_tags(self.id, self.tags),
            "CapacityAllocations": [],
            "PlacementGroupArn": self.placement_group_arn,
            "ReservationType": self.kind,
        }
        return {key: value for key, value in described.items() if value is not None}


RESERVATIONS: dict[str, Reservation] = {}


def install() -> None:
    """Add the actions of capacity reservations, and their type as members of a resource group."""
    hooks.replace(
        "GROUPED_TYPE",
        lambda original: (
            lambda arn: str(original(arn)).replace("Capacity-reservation", "CapacityReservation")
        ),
    )
    moto_actions.add(
        "ec2",
        create_capacity_reservation,
        describe_capacity_reservations,
        cancel_capacity_reservation,
        get_spot_placement_scores,
    )


def zone_id(zone: str) -> str:
    """Return the id of a zone by its name."""
    return next(str(z.zone_id) for z in ec2().describe_availability_zones() if z.name == zone)


def zones_with(instance_type: str) -> list[str]:
    """Return the zones that offer the instance type. Raises EC2's InvalidInstanceType."""
    ec2().describe_instance_types([instance_type])
    offered = ec2().describe_instance_type_offerings(
        "availability-zone", filters={"instance-type": [instance_type]}
    )
    return sorted(offering["Location"] for offering in offered)


def create_capacity_reservation(self: Any) -> Any:
    """Answer CreateCapacityReservation."""
    instance_type, zone = parameter(self, "InstanceType"), parameter(self, "AvailabilityZone")
    zones = zones_with(instance_type)
    if wanted := parameter(self, "AvailabilityZoneId"):
        zone = next((name for name in zones if zone_id(name) == wanted), wanted)
    if zone not in zones:
        raise moto_actions.error(
            "Unsupported",
            f"Your requested instance type ({instance_type}) is not supported in your requested "
            f"Availability Zone ({zone}). Please retry your request by choosing {', '.join(zones)}.",
        )
    group = parameter(self, "PlacementGroupArn")
    reservation = Reservation(
        instance_type=instance_type,
        zone=zone,
        count=int(parameter(self, "InstanceCount")),
        platform=parameter(self, "InstancePlatform"),
        match=parameter(self, "InstanceMatchCriteria", "open"),
        placement_group_arn=placement_groups.find(arn=group).arn if group else None,
        tags=moto_actions.given_tags(self),
        end=in_utc(parameter(self, "EndDate")),
    )
    RESERVATIONS[reservation.id] = reservation
    return moto_actions.answer(CapacityReservation=reservation.describe())


def describe_capacity_reservations(self: Any) -> Any:
    """Answer DescribeCapacityReservations, by id and by a number of filters."""
    found = [_find(id_) for id_ in parameter(self, "CapacityReservationIds", [])]
    described = [reservation.describe() for reservation in found or RESERVATIONS.values()]
    members = {
        "instance-type": "InstanceType",
        "availability-zone": "AvailabilityZone",
        "state": "State",
        "instance-platform": "InstancePlatform",
        "placement-group-arn": "PlacementGroupArn",
    }
    for name, values in moto_actions.filters(self).items():
        if name not in members:
            raise moto_actions.error("InvalidParameterValue", f"The filter '{name}' is invalid")
        described = [d for d in described if d.get(members[name]) in values]
    return moto_actions.answer(CapacityReservations=described)


def cancel_capacity_reservation(self: Any) -> Any:
    """Answer CancelCapacityReservation; a Capacity Block cannot be cancelled."""
    reservation = _find(parameter(self, "CapacityReservationId"))
    if reservation.kind == BLOCK:
        raise moto_actions.error(
            "OperationNotPermitted", f"The Capacity Block {reservation.id} cannot be cancelled."
        )
    reservation.cancelled = True
    return moto_actions.answer(Return=True)


def get_spot_placement_scores(self: Any) -> Any:
    """Answer GetSpotPlacementScores: the same score for every zone of this region with the first type."""
    type_, *_ = parameter(self, "InstanceTypes")
    is_here = REGION in parameter(self, "RegionNames", [REGION])
    zones = zones_with(type_) if is_here else []
    scores = [{"Region": REGION, "AvailabilityZoneId": zone_id(zone), "Score": 3} for zone in zones]
    return moto_actions.answer(SpotPlacementScores=scores)


def _find(id_: str) -> Reservation:
    if id_ not in RESERVATIONS:
        raise moto_actions.error(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation ID '{id_}' does not exist"
        )
    return RESERVATIONS[id_]
