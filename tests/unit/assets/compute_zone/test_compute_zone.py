"""The zone's custom resource alone, in the local AWS."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.unit.assets.functions import FunctionAccount, load, refusal

STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/TrainingCluster-Network/1"
RESERVATION, OTHER = "cr-0123456789abcdef0", "cr-0123456789abcdef1"
GROUP = "arn:aws:resource-groups:us-east-1:123456789012:group/mine"
POOL = "AWS::EC2::CapacityReservationPool"
LOCAL = {"ZoneId": "use1-atl1-az1", "ZoneName": "us-east-1-atl-1a", "ZoneType": "local-zone"}
# Of moto's us-east-1: trn1 is in 1a, 1d and 1f (use1-az6, -az4, -az5), and P6 in 1a alone.
C5, TRN1, P6, NOWHERE = "c5.4xlarge", "trn1.32xlarge", "p6-b200.48xlarge", "hpc7a.96xlarge"
Ask = Callable[..., dict[str, Any]]
Refuse = Callable[..., str]


@pytest.fixture(scope="module")
def handler() -> Any:
    return load("compute_zone")["handler"]


@pytest.fixture
def region(monkeypatch: pytest.MonkeyPatch) -> FunctionAccount:
    account = FunctionAccount(STACK, monkeypatch)
    account.amended["DescribeAvailabilityZones"] = lambda said: said["AvailabilityZones"].append(LOCAL)
    return account


@pytest.fixture
def impaired(region: FunctionAccount) -> None:
    """Let use1-az4 be impaired."""

    def change(said: dict[str, Any]) -> None:
        for each in said["AvailabilityZones"]:
            each["State"] = "impaired" if each["ZoneId"] == "use1-az4" else "available"

    region.amended["DescribeAvailabilityZones"] = change


def reserve(region: FunctionAccount, group: tuple[str, ...] = (), **places: dict[str, str]) -> None:
    """Have reservations, which another account may share, and a group of some of them."""

    def describe(asked: dict[str, Any]) -> dict[str, Any]:
        (id_,) = asked["CapacityReservationIds"]
        return {"CapacityReservations": [{"CapacityReservationId": id_, **places[id_.replace("-", "_")]}]}

    arns = [f"arn:aws:ec2:us-east-1:123456789012:capacity-reservation/{each}" for each in group]
    members = [{"Identifier": {"ResourceArn": each}} for each in arns]
    region.answers["DescribeCapacityReservations"] = describe
    region.answers["ListGroupResources"] = {"Resources": members}
    region.answers["GetGroupConfiguration"] = {"GroupConfiguration": {"Configuration": [{"Type": POOL}]}}


def reserve_one(region: FunctionAccount, **place: str) -> None:
    reserve(region, (), **{RESERVATION.replace("-", "_"): place})


@pytest.fixture
def ask(handler: Any, region: FunctionAccount) -> Ask:
    """Send one event, as CDK's framework does; `kept` makes it an Update."""

    def send(
        *types: str, zone: str = "auto", reserved: str = "", kept: str = "", kind: str = ""
    ) -> dict[str, Any]:
        reservations = [{"Id": each, "Queue": "block", "Types": [P6]} for each in reserved.split()]
        event = {
            "RequestType": kind or ("Update" if kept else "Create"),
            "StackId": STACK,
            "ResourceProperties": {
                "Zone": zone,
                "InstanceTypes": sorted(types),
                "Reservations": reservations,
            },
        } | ({"PhysicalResourceId": kept} if kept else {})
        answer: dict[str, Any] = handler.on_event(event, None)
        return answer

    return send


@pytest.fixture
def refuse(ask: Ask) -> Refuse:
    return partial(refusal, ask)


def test_auto_is_the_first_zone_with_every_type(ask: Ask) -> None:
    assert ask(C5, TRN1) == {
        "PhysicalResourceId": "use1-az4",
        "Data": {"Id": "use1-az4", "Name": "us-east-1d", "OtherName": "us-east-1b"},
    }
    assert ask(C5)["PhysicalResourceId"] == "use1-az1"


def test_auto_skips_impaired_zones(ask: Ask, impaired: None) -> None:
    assert ask(TRN1)["PhysicalResourceId"] == "use1-az5"


def test_no_common_zone_is_refused_with_each_types(refuse: Refuse) -> None:
    said = refuse(C5, NOWHERE)
    assert "No zone of us-east-1 offers all" in said
    assert f"({NOWHERE}: none; {C5}: use1-az1, use1-az2, use1-az4, use1-az5, use1-az6)" in said
    assert "another region" in said
    said = refuse(NOWHERE, zone="use1-az1")
    assert f"{NOWHERE}: none" in said
    assert "-c zone=" not in said


@pytest.mark.parametrize("nowhere", [[NOWHERE], []])
def test_a_refusal_of_many_types_fits(refuse: Refuse, region: FunctionAccount, nowhere: list[str]) -> None:
    many = [f"u7inh-32tb.{number}xlarge" for number in range(60)]

    def offer(asked: dict[str, Any]) -> dict[str, Any]:
        ((type_,),) = (each["Values"] for each in asked["Filters"])
        zones = {P6: ["use1-az6"], NOWHERE: []}.get(type_, ["use1-az1", "use1-az4"])
        return {"InstanceTypeOfferings": [{"InstanceType": type_, "Location": each} for each in zones]}

    region.answers["DescribeInstanceTypeOfferings"] = offer
    said = refuse(*many, P6, *nowhere, zone="use1-az6")  # refuse measures it
    assert "u7inh-32tb.0xlarge" in said
    assert " more" in said
    assert all(f"{name}: none" in said for name in nowhere)


@pytest.mark.parametrize("asked", ["use1-az6", "us-east-1a"])
def test_a_zone_is_given_by_id_or_name(ask: Ask, asked: str) -> None:
    zone = ask(C5, zone=asked)["Data"]
    assert (zone["Id"], zone["Name"]) == ("use1-az6", "us-east-1a")


def test_a_zone_without_a_type_is_refused(refuse: Refuse) -> None:
    said = refuse(C5, TRN1, zone="us-east-1b")
    assert f"zone=us-east-1b is use1-az1 (us-east-1b), which does not offer {TRN1}" in said
    both = "use1-az4 (us-east-1d), use1-az5 (us-east-1f), use1-az6 (us-east-1a)"
    assert f"{C5}, {TRN1}: {both}" in said
    assert "-c zone=use1-az4" in said
    for asked in ("us-west-2a", "use1-az9", "us-east-1-atl-1a"):
        said = refuse(TRN1, zone=asked)
        assert f"zone={asked}: us-east-1 has no such zone" in said
        assert both in said


def test_a_zone_that_is_not_available_is_refused(refuse: Refuse, impaired: None) -> None:
    said = refuse(TRN1, zone="use1-az4")
    assert "which is not available now" in said
    assert "-c zone=use1-az5" in said


@pytest.mark.parametrize(
    "place",
    [
        {"AvailabilityZoneId": "use1-az6"},
        {"AvailabilityZone": "us-east-1a"},
        # Another account's name of the zone.
        {"AvailabilityZone": "us-east-1b", "AvailabilityZoneId": "use1-az6"},
    ],
)
def test_the_zone_of_a_reservation_wins(ask: Ask, region: FunctionAccount, place: dict[str, str]) -> None:
    reserve_one(region, **place)
    assert ask(C5, reserved=RESERVATION)["Data"]["Name"] == "us-east-1a"
    assert ask(C5, reserved=RESERVATION, zone="us-east-1a")["Data"]["Id"] == "use1-az6"


def test_a_reservation_in_an_unfit_zone_is_refused(refuse: Refuse, region: FunctionAccount) -> None:
    reserve_one(region, AvailabilityZoneId="use1-az6")
    said = refuse(C5, reserved=RESERVATION, zone="us-east-1d")
    assert "zone=us-east-1d is use1-az4 (us-east-1d); the reservation" in said
    assert f"{RESERVATION} of queue block is in use1-az6 (us-east-1a). Type" in said
    assert "-c zone=use1-az6, or leave zone out" in said
    said = refuse(C5, reserved=RESERVATION, kept="use1-az4")
    assert f"for good, and the reservation {RESERVATION} of queue block is in use1-az6" in said
    assert '"Queues in other zones"' in said
    reserve_one(region, AvailabilityZoneId="use1-az3")
    said = refuse(C5, "p5.48xlarge", reserved=RESERVATION)
    assert f"{RESERVATION} of queue block is in use1-az3 (us-east-1e), which does not offer {C5}" in said


def test_reservations_of_two_zones_are_refused(refuse: Refuse, region: FunctionAccount) -> None:
    reserve(
        region,
        cr_0123456789abcdef0={"AvailabilityZoneId": "use1-az6"},
        cr_0123456789abcdef1={"AvailabilityZoneId": "use1-az4"},
    )
    said = refuse(C5, reserved=f"{RESERVATION} {OTHER}")
    assert f"the reservation {OTHER} of queue block is in use1-az4 (us-east-1d). Deploy without one" in said


def test_a_group_leaves_the_zones_of_its_types(ask: Ask, refuse: Refuse, region: FunctionAccount) -> None:
    zones = {"cr-1": ("use1-az6", P6), "cr-2": ("use1-az1", C5), "cr-3": ("use1-az5", P6)}
    places = {
        id_.replace("-", "_"): {"AvailabilityZoneId": zone, "InstanceType": type_}
        for id_, (zone, type_) in zones.items()
    }
    places["cr_3"]["State"] = "expired"
    reserve(region, ("cr-1", "cr-2", "cr-3"), **places)
    assert ask(C5, reserved=GROUP)["PhysicalResourceId"] == "use1-az6"
    assert f"{GROUP} of queue block is in use1-az6" in refuse(C5, reserved=GROUP, kept="use1-az4")
    region.answers["GetGroupConfiguration"] = {"GroupConfiguration": {}}
    assert f"cannot launch into the group {GROUP} of queue block. Another one: aws" in refuse(reserved=GROUP)
    reserve(region)
    assert f"{GROUP} of queue block has no reservation of {P6}" in refuse(C5, reserved=GROUP)


def test_the_other_zone_has_databases(ask: Ask, region: FunctionAccount) -> None:
    options = [{"AvailabilityZones": [{"Name": "us-east-1f"}, {"Name": "us-east-1c"}]}]
    region.answers["DescribeOrderableDBInstanceOptions"] = {"OrderableDBInstanceOptions": options}
    assert ask(C5)["Data"]["OtherName"] == "us-east-1c"
    region.throttle("DescribeOrderableDBInstanceOptions")
    assert ask(C5)["Data"]["OtherName"] == "us-east-1c", "of use1-az2, the first other one"


def test_an_unknown_reservation_is_refused(refuse: Refuse, region: FunctionAccount) -> None:
    assert RESERVATION in refuse(C5, reserved=RESERVATION)
    reserve_one(region, AvailabilityZoneId=LOCAL["ZoneId"])
    assert RESERVATION in refuse(C5, reserved=RESERVATION)


@pytest.mark.parametrize("asked", ["auto", "use1-az4", "us-east-1d"])
def test_an_update_keeps_an_impaired_zone(ask: Ask, impaired: None, asked: str) -> None:
    assert ask(C5, zone=asked, kept="use1-az4") == {
        "PhysicalResourceId": "use1-az4",
        "Data": {"Id": "use1-az4", "Name": "us-east-1d", "OtherName": "us-east-1b"},
    }


def test_an_update_to_another_zone_is_refused(refuse: Refuse) -> None:
    said = refuse(C5, P6, kept="use1-az4")
    assert f"stays in use1-az4 (us-east-1d) for good, and that zone does not offer {P6}." in said
    assert f"Zones that offer all of {C5}, {P6}: use1-az6 (us-east-1a)." in said
    assert "Nothing was changed" in said
    assert "another region" in said
    said = refuse(C5, zone="us-east-1a", kept="use1-az4")
    assert "stays in use1-az4 (us-east-1d) for good, and zone=us-east-1a is use1-az6 (us-east-1a)." in said


def test_the_way_back_is_always_open(ask: Ask, region: FunctionAccount) -> None:
    region.statuses = ["UPDATE_ROLLBACK_IN_PROGRESS"]
    region.throttle("DescribeInstanceTypeOfferings", "DescribeCapacityReservations")
    back = ask(P6, zone="use1-az1", reserved=RESERVATION, kept="use1-az4")
    assert back["Data"] == {"Id": "use1-az4", "Name": "us-east-1d", "OtherName": "us-east-1b"}


def test_the_other_zone_is_the_first_available(ask: Ask, region: FunctionAccount) -> None:
    def change(said: dict[str, Any]) -> None:
        first, second, *others = said["AvailabilityZones"]
        second["State"] = "impaired"
        said["AvailabilityZones"] = [first] if alone else [first, second, *others]

    alone = False
    assert ask(C5)["Data"]["OtherName"] == "us-east-1c", "us-east-1b is the network's"
    region.amended["DescribeAvailabilityZones"] = change
    assert ask(C5, zone="use1-az4")["Data"]["OtherName"] == "us-east-1c", "us-east-1b is impaired"
    alone = True
    assert ask(C5)["Data"]["OtherName"] == "us-east-1a"


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"])
def test_an_update_keeps_the_other_zone(ask: Ask, region: FunctionAccount, status: str) -> None:
    """A subnet cannot move: CloudFormation makes the new one first, and its range is taken."""
    region.statuses = [status]
    region.outputs = {"ZoneName": "us-east-1d", "OtherZoneName": "us-east-1a"}
    assert ask(C5, kept="use1-az4")["Data"]["OtherName"] == "us-east-1a"


def test_a_delete_asks_nothing(ask: Ask, region: FunctionAccount) -> None:
    assert ask(kind="Delete", kept="use1-az4") == {"PhysicalResourceId": "use1-az4"}
    assert not region.configs


def test_throttled_calls_are_repeated_and_then_reported(refuse: Refuse, region: FunctionAccount) -> None:
    region.throttle("DescribeInstanceTypeOfferings")
    said = refuse(C5)
    assert "RequestLimitExceeded" in said
    assert "Nothing was changed; type the deploy again" in said
    assert "continue-update-rollback --stack-name TrainingCluster-Network" in said
    for config in region.configs:
        assert config.retries == {"mode": "standard", "max_attempts": 10}
