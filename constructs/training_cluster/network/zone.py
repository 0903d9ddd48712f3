"""The network's zone: a custom resource that chooses it at deploy time, and keeps it."""

from __future__ import annotations

from aws_cdk import Duration
from constructs import Construct

from training_cluster.functions.custom_resource import Ec2Questions, FunctionResource
from training_cluster.paths import ASSETS

RESOURCE_TYPE = "Custom::ComputeZone"

_QUESTIONS = Ec2Questions(
    actions=["DescribeAvailabilityZones", "DescribeInstanceTypeOfferings", "DescribeCapacityReservations"],
    purpose="Asks EC2 which zone has the instance types",
)


class ComputeZone(FunctionResource):
    """One zone for everything: the reservation's, or the one asked for, or the first that has all types.

    An update keeps it, or fails before anything is touched: its inputs are the only ones of NetworkStack that
    follow a cluster's flags.

    Args:
        zone: auto, a zone's name or its id.
        instance_types: what the zone has to offer.
        reservation_id: cr-... whose zone it has to be.

    Attributes:
        id: the zone's id (a token): the same place in every account.
        name: the zone's name in this account (a token).
        other_name: name of another zone (a token), for a database that has to be in two; kept like the first.
    """

    def __init__(
        self, scope: Construct, id_: str, *, zone: str, instance_types: list[str], reservation_id: str | None
    ) -> None:
        super().__init__(
            scope,
            id_,
            name="Zone",
            resource_type=RESOURCE_TYPE,
            code=ASSETS / "compute_zone",
            # A throttled call is repeated for up to two minutes.
            timeout=Duration.minutes(8),
            properties={
                "Zone": zone,
                "InstanceTypes": instance_types,
                "ReservationId": reservation_id or "",
            },
            questions=_QUESTIONS,
        )
        self.id = self.resource.get_att_string("Id")
        self.name = self.resource.get_att_string("Name")
        self.other_name = self.resource.get_att_string("OtherName")
