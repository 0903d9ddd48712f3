"""A resource group of reservations as a queue's capacity: what of it suits the queue."""

from typing import Any

import pytest

from ops.preflight.capacity.reservation import check_reservations
from ops.preflight.existing_network import ExistingNetwork
from tests.unit.ops.fake_account import Account, Refused
from training_cluster.rules.context import read_settings

GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/mine"
RESERVATION = "cr-0123456789abcdef0"
NETWORK = ExistingNetwork(vpc_id=None, public=None, private=None, node_group_id=None)


def reservation(**more: Any) -> dict[str, Any]:
    return {
        "CapacityReservationId": RESERVATION,
        "InstanceType": "g5.48xlarge",
        "State": "active",
        "TotalInstanceCount": 4,
    } | more


@pytest.mark.parametrize(
    ("members", "found", "verdict"),
    [
        ([RESERVATION], reservation(), "ok"),
        ([RESERVATION], reservation(TotalInstanceCount=1), "warning"),
        ([RESERVATION], reservation(InstanceType="p4d.24xlarge"), "problem"),
        ([RESERVATION], reservation(State="expired"), "problem"),
        ([], reservation(), "problem"),
        (None, reservation(), "problem"),
    ],
)
def test_its_instances_of_the_queues_types_are_counted(
    members: list[str] | None, found: dict[str, Any], verdict: str
) -> None:
    arns = [f"arn:aws:ec2:us-east-1:123456789012:capacity-reservation/{each}" for each in members or []]
    account = Account(
        {
            "ListGroupResources": Refused("NotFoundException")
            if members is None
            else {"Resources": [{"Identifier": {"ResourceArn": arn}} for arn in arns]},
            "DescribeCapacityReservations": {"CapacityReservations": [found]},
        }
    )
    settings = read_settings({"family": "g5", "capacity": f"reservation:{GROUP}", "nodes": "2"})
    (finding,) = check_reservations(settings.first_queue, settings, NETWORK, account.client)
    assert finding.verdict == verdict
    assert GROUP in finding.check
