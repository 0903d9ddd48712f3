"""The zone's custom resource alone, with fakes of AWS."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.unit.assets.compute_zone.zone_fakes import RESERVATION, STACK, FakeRegion, zone
from tests.unit.assets.function_fakes import load, refusal

Ask = Callable[..., dict[str, Any]]
Refuse = Callable[..., str]


@pytest.fixture(scope="module")
def handler() -> Any:
    return load("compute_zone")["handler"]


@pytest.fixture
def region(monkeypatch: pytest.MonkeyPatch) -> FakeRegion:
    played = FakeRegion()
    played.play(monkeypatch)
    return played


@pytest.fixture
def ask(handler: Any, region: FakeRegion) -> Ask:
    """Send one event, as CDK's framework does; `kept` makes it an Update."""

    def send(
        *types: str, zone: str = "auto", reservation: str = "", kept: str = "", kind: str = ""
    ) -> dict[str, Any]:
        event = {
            "RequestType": kind or ("Update" if kept else "Create"),
            "StackId": STACK,
            "ResourceProperties": {
                "Zone": zone,
                "InstanceTypes": sorted(types),
                "ReservationId": reservation,
            },
        } | ({"PhysicalResourceId": kept} if kept else {})
        answer: dict[str, Any] = handler.on_event(event, None)
        return answer

    return send


@pytest.fixture
def refuse(ask: Ask) -> Refuse:
    return partial(refusal, ask)


def test_auto_is_the_first_zone_with_every_type(ask: Ask) -> None:
    assert ask("c5.4xlarge", "trn1.32xlarge") == {
        "PhysicalResourceId": "use1-az4",
        "Data": {"Id": "use1-az4", "Name": "us-east-1d", "OtherName": "us-east-1b"},
    }
    assert ask("c5.4xlarge")["PhysicalResourceId"] == "use1-az1"


def test_auto_skips_impaired_and_local_zones(ask: Ask, region: FakeRegion) -> None:
    region.zones[2] = zone("use1-az4", "us-east-1d", state="impaired")
    assert ask("trn1.32xlarge")["PhysicalResourceId"] == "use1-az6"


def test_no_common_zone_is_refused_with_each_types(refuse: Refuse) -> None:
    said = refuse("c5.4xlarge", "hpc7a.96xlarge")
    assert "No zone of us-east-1 offers all" in said
    assert "(hpc7a.96xlarge: none; c5.4xlarge: use1-az1, use1-az4, use1-az6)" in said
    assert "another region" in said


@pytest.mark.parametrize("nowhere", [["zz.metal"], []])
def test_a_refusal_of_many_types_fits(refuse: Refuse, region: FakeRegion, nowhere: list[str]) -> None:
    types = [f"u7inh-32tb.{number}xlarge" for number in range(60)]
    region.offers |= {name: ["use1-az1", "use1-az4"] for name in types}
    said = refuse(*types, "p6.48xlarge", *nowhere, zone="use1-az6")  # refuse measures it
    assert "u7inh-32tb.0xlarge" in said
    assert " more" in said
    assert all(f"{name}: none" in said for name in nowhere)


@pytest.mark.parametrize("asked", ["use1-az6", "us-east-1a"])
def test_a_zone_is_given_by_id_or_name(ask: Ask, asked: str) -> None:
    zone = ask("c5.4xlarge", zone=asked)["Data"]
    assert (zone["Id"], zone["Name"]) == ("use1-az6", "us-east-1a")


def test_a_zone_without_a_type_is_refused(refuse: Refuse) -> None:
    said = refuse("c5.4xlarge", "trn1.32xlarge", zone="us-east-1b")
    assert "zone=us-east-1b is use1-az1 (us-east-1b), which does not offer trn1.32xlarge" in said
    assert "c5.4xlarge, trn1.32xlarge: use1-az4 (us-east-1d), use1-az6 (us-east-1a)" in said
    assert "-c zone=use1-az4" in said


def test_a_type_of_no_zone_suggests_none(refuse: Refuse) -> None:
    said = refuse("hpc7a.96xlarge", zone="use1-az1")
    assert "hpc7a.96xlarge: none" in said
    assert "-c zone=" not in said


@pytest.mark.parametrize("asked", ["us-west-2a", "use1-az9", "us-east-1-atl-1a"])
def test_an_unknown_zone_is_refused(refuse: Refuse, asked: str) -> None:
    said = refuse("trn1.32xlarge", zone=asked)
    assert f"zone={asked}: us-east-1 has no such zone" in said
    assert "use1-az4 (us-east-1d), use1-az6 (us-east-1a)" in said


def test_a_zone_that_is_not_available_is_refused(refuse: Refuse, region: FakeRegion) -> None:
    region.zones[2] = zone("use1-az4", "us-east-1d", state="impaired")
    said = refuse("trn1.32xlarge", zone="use1-az4")
    assert "which is not available now" in said
    assert "-c zone=use1-az6" in said


@pytest.mark.parametrize("place", [{"AvailabilityZoneId": "use1-az6"}, {"AvailabilityZone": "us-east-1a"}])
def test_the_zone_of_a_reservation_wins(ask: Ask, region: FakeRegion, place: dict[str, str]) -> None:
    region.reservations[RESERVATION] = place
    assert ask("c5.4xlarge", reservation=RESERVATION)["PhysicalResourceId"] == "use1-az6"
    assert ask("c5.4xlarge", reservation=RESERVATION, zone="us-east-1a")["Data"]["Id"] == "use1-az6"


def test_a_shared_reservations_zone_counts_by_id(ask: Ask, region: FakeRegion) -> None:
    region.reservations[RESERVATION] = {"AvailabilityZone": "us-east-1b", "AvailabilityZoneId": "use1-az6"}
    assert ask("c5.4xlarge", reservation=RESERVATION)["Data"]["Name"] == "us-east-1a"


def test_another_zone_than_the_reservations_is_refused(refuse: Refuse, region: FakeRegion) -> None:
    region.reservations[RESERVATION] = {"AvailabilityZoneId": "use1-az6"}
    said = refuse("c5.4xlarge", reservation=RESERVATION, zone="us-east-1d")
    assert f"{RESERVATION} is in use1-az6 (us-east-1a), and zone=us-east-1d is use1-az4" in said
    assert "-c zone=use1-az6, or leave zone out" in said


def test_a_reservations_zone_needs_the_head_nodes_type(refuse: Refuse, region: FakeRegion) -> None:
    region.offers["c5.4xlarge"] = ["use1-az1"]
    region.reservations[RESERVATION] = {"AvailabilityZoneId": "use1-az6"}
    said = refuse("c5.4xlarge", "p6.48xlarge", reservation=RESERVATION)
    assert (
        f"the reservation {RESERVATION} is in use1-az6 (us-east-1a), which does not offer c5.4xlarge" in said
    )


@pytest.mark.parametrize("place", [{}, {RESERVATION: {"AvailabilityZoneId": "use1-atl1-az1"}}])
def test_an_unknown_reservation_is_refused(
    refuse: Refuse, region: FakeRegion, place: dict[str, dict[str, str]]
) -> None:
    region.reservations |= place
    assert RESERVATION in refuse("c5.4xlarge", reservation=RESERVATION)


@pytest.mark.parametrize("asked", ["auto", "use1-az4", "us-east-1d"])
def test_an_update_keeps_the_zone(ask: Ask, asked: str) -> None:
    assert ask("c5.4xlarge", zone=asked, kept="use1-az4") == {
        "PhysicalResourceId": "use1-az4",
        "Data": {"Id": "use1-az4", "Name": "us-east-1d", "OtherName": "us-east-1b"},
    }


def test_an_update_keeps_an_impaired_zone(ask: Ask, region: FakeRegion) -> None:
    region.zones[2] = zone("use1-az4", "us-east-1d", state="impaired")
    assert ask("c5.4xlarge", kept="use1-az4")["PhysicalResourceId"] == "use1-az4"


def test_an_update_to_a_lacking_type_is_refused(refuse: Refuse) -> None:
    said = refuse("c5.4xlarge", "p6.48xlarge", kept="use1-az4")
    assert "stays in use1-az4 (us-east-1d) for good, and that zone does not offer p6.48xlarge." in said
    assert "Zones that offer all of c5.4xlarge, p6.48xlarge: use1-az6 (us-east-1a)." in said
    assert "Nothing was changed" in said
    assert "another region" in said


def test_an_update_to_another_zone_is_refused(refuse: Refuse) -> None:
    said = refuse("c5.4xlarge", zone="us-east-1a", kept="use1-az4")
    assert "stays in use1-az4 (us-east-1d) for good, and zone=us-east-1a is use1-az6 (us-east-1a)." in said


def test_an_update_to_a_reservation_elsewhere_is_refused(refuse: Refuse, region: FakeRegion) -> None:
    region.reservations[RESERVATION] = {"AvailabilityZoneId": "use1-az6"}
    said = refuse("c5.4xlarge", reservation=RESERVATION, kept="use1-az4")
    assert f"use1-az4 (us-east-1d) for good, and the reservation {RESERVATION} is in use1-az6" in said


def test_the_way_back_is_always_open(ask: Ask, region: FakeRegion) -> None:
    region.stack_answers = ["UPDATE_ROLLBACK_IN_PROGRESS"]
    region.throttled = {"DescribeInstanceTypeOfferings", "DescribeCapacityReservations"}
    back = ask("p6.48xlarge", zone="use1-az1", reservation=RESERVATION, kept="use1-az4")
    assert back["Data"] == {"Id": "use1-az4", "Name": "us-east-1d", "OtherName": "us-east-1b"}


def test_the_other_zone_is_the_first_available(ask: Ask, region: FakeRegion) -> None:
    assert ask("c5.4xlarge")["Data"]["OtherName"] == "us-east-1d", "us-east-1b is the network's"
    region.zones[1] = zone("use1-az1", "us-east-1b", state="impaired")
    assert ask("c5.4xlarge", zone="use1-az4")["Data"]["OtherName"] == "us-east-1a"


def test_a_region_with_one_zone_has_no_other(ask: Ask, region: FakeRegion) -> None:
    del region.zones[1:]
    assert ask("c5.4xlarge")["Data"]["OtherName"] == "us-east-1a"


@pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"])
def test_an_update_keeps_the_other_zone(ask: Ask, region: FakeRegion, status: str) -> None:
    """A subnet cannot move: CloudFormation makes the new one first, and its range is taken."""
    region.stack_answers = [status]
    region.stack_outputs = {"ZoneName": "us-east-1d", "OtherZoneName": "us-east-1a"}
    assert ask("c5.4xlarge", kept="use1-az4")["Data"]["OtherName"] == "us-east-1a"


def test_a_delete_asks_nothing(ask: Ask, region: FakeRegion) -> None:
    assert ask(kind="Delete", kept="use1-az4") == {"PhysicalResourceId": "use1-az4"}
    assert not region.options


def test_throttled_calls_are_repeated_and_then_reported(refuse: Refuse, region: FakeRegion) -> None:
    region.throttled = {"DescribeInstanceTypeOfferings"}
    said = refuse("c5.4xlarge")
    assert "RequestLimitExceeded" in said
    assert "Nothing was changed; type the deploy again" in said
    assert "continue-update-rollback --stack-name TrainingCluster-Network" in said
    for config in region.options:
        assert config.retries == {"mode": "standard", "max_attempts": 10}
