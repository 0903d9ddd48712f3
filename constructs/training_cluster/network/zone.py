"""Custom resource that chooses the network's zone at deploy time, and never changes it."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Duration
from constructs import Construct

from training_cluster.functions.custom_resource import FunctionResource
from training_cluster.paths import ASSETS

RESOURCE_TYPE = "Custom::ComputeZone"


class ComputeZone(FunctionResource):
    """The zone of everything: the reservations', else the flag's, else the first that has all instance types.

    An update keeps it, or fails before any other change: its inputs are the only ones of NetworkStack that
    depend on a cluster's flags.

    Args:
        needs: input of the function: flag, instance types, reservations (cluster/zone_needs.py).

    Attributes:
        id: id of the zone (a token): the same place in every account.
        name: name of the zone in this account (a token).
        other_name: name of a second zone (a token), for the database, which needs two; never changed either.
    """

    def __init__(self, scope: Construct, id_: str, *, needs: Mapping[str, Any]) -> None:
        super().__init__(
            scope,
            id_,
            name="Zone",
            resource_type=RESOURCE_TYPE,
            code=ASSETS / "compute_zone",
            # The function repeats a throttled call for up to two minutes.
            timeout=Duration.minutes(8),
            properties=needs,
            actions=[
                *("ec2:DescribeAvailabilityZones", "ec2:DescribeInstanceTypeOfferings"),
                *("ec2:DescribeCapacityReservations", "resource-groups:ListGroupResources"),
                *("resource-groups:GetGroupConfiguration", "rds:DescribeOrderableDBInstanceOptions"),
            ],
            purpose="Asks AWS which zone has the instance types, reservations and databases",
        )
        self.id = self.resource.get_att_string("Id")
        self.name = self.resource.get_att_string("Name")
        self.other_name = self.resource.get_att_string("OtherName")
