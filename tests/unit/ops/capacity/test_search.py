"""`trainctl capacity`: what EC2 offers, in order of cost; a refused call is a row and hides no other."""

import datetime
import json
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from ops.capacity.search import Offer, Wanted, search
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.jobs_head_node import Call
from tests.unit.ops.own_account import OwnAccount
from training_cluster.rules.context import read_settings

START = datetime.datetime(2026, 12, 3, 11, 30, tzinfo=datetime.UTC)
ZONES = {"us-east-1a": "use1-az4", "us-east-1b": "use1-az6"}


def zones() -> list[dict[str, Any]]:
    return [{"ZoneName": name, "ZoneId": id_, "ZoneType": "availability-zone"} for name, id_ in ZONES.items()]


def block(fee: str, *, days: int = 14, count: int = 16) -> dict[str, Any]:
    return {
        "CapacityBlockOfferingId": f"cb-{fee}",
        "InstanceType": "p5.48xlarge",
        "AvailabilityZone": "us-east-1b",
        "InstanceCount": count,
        "StartDate": START,
        "EndDate": START + datetime.timedelta(days=days),
        "UpfrontFee": fee,
        "CurrencyCode": "USD",
    }


def price(zone: str, usd: str) -> dict[str, Any]:
    return {"AvailabilityZone": zone, "SpotPrice": usd, "Timestamp": START}


# As EC2's API reference has them; none was recorded from AWS.
RESERVED = {
    "CapacityReservationId": "cr-0123456789abcdef0",
    "InstanceType": "p5.48xlarge",
    "AvailabilityZoneId": "use1-az6",
    "State": "active",
    "TotalInstanceCount": 4,
    "AvailableInstanceCount": 3,
}
BOUGHT = RESERVED | {
    "CapacityReservationId": "cr-0fedcba9876543210",
    "ReservationType": "capacity-block",
    "State": "scheduled",
    "StartDate": START,
    "EndDate": START + datetime.timedelta(days=1),
    "TotalInstanceCount": 0,
    "AvailableInstanceCount": 0,
}
DIMENSION = {"unit": "Hrs", "pricePerUnit": {"USD": "50"}}
OFFER = {"effectiveDate": "2026-09-01T00:00:00Z", "priceDimensions": {"b": DIMENSION}}


def scores(asked: dict[str, Any]) -> dict[str, Any]:
    assert (asked["SingleAvailabilityZone"], asked["RegionNames"]) == (True, ["us-east-1"])
    return {"SpotPlacementScores": [{"AvailabilityZoneId": "use1-az6", "Score": 3}]}


ANSWERS: dict[str, Any] = {
    "DescribeAvailabilityZones": {"AvailabilityZones": zones()},
    "DescribeInstanceTypeOfferings": {"InstanceTypeOfferings": [{"Location": "use1-az6"}]},
    "DescribeCapacityReservations": {"CapacityReservations": [RESERVED, BOUGHT]},
    "DescribeCapacityBlockOfferings": {"CapacityBlockOfferings": [block("150000"), block("140000.00")]},
    "GetSpotPlacementScores": scores,
    "DescribeSpotPriceHistory": {"SpotPriceHistory": [price("us-east-1a", "25"), price("us-east-1b", "20")]},
    "GetProducts": {"PriceList": [json.dumps({"terms": {"OnDemand": {"a": OFFER}}})]},
}


def found(*, nodes: int = 16, days: int = 14, **answers: Any) -> list[Offer]:
    account = Account(ANSWERS | answers)
    wanted = Wanted(settings=read_settings({"family": "p5", "nodes": str(nodes)}), days=days)
    return search(
        wanted, ["us-east-1"], clients=lambda _: account.client, pricing=lambda: account.client("pricing")
    )


def test_offers_are_sorted_by_cost() -> None:
    hours = 16 * 14 * 24
    rows = [(each.how, each.zone, each.usd) for each in found()]
    assert rows == [
        ("reservation", "use1-az6", None),
        ("capacity-block", "use1-az6", None),
        ("spot", "use1-az6", 20 * hours),
        ("spot", "use1-az4", 25 * hours),
        ("block to buy", "use1-az6", 140_000),
        ("block to buy", "use1-az6", 150_000),
        ("ondemand", "use1-az6", pytest.approx(50 * hours)),
    ]
    reserved, bought, *_ = found()
    assert bought.found == "scheduled from 2026-12-03 11:30 until 2026-12-04 11:30, 0 of 0 idle"
    assert "-c nodes=16 " in bought.type, "a block that has not begun has no instances yet"
    assert reserved.found == "active, 3 of 4 idle"
    few = "-c family=p5 -c nodes=4 -c zone=use1-az6 -c capacity=reservation:cr-0123456789abcdef0"
    assert reserved.type == few
    bought = next(each for each in found() if each.usd == 140_000)
    assert bought.found == "16 nodes, 2026-12-03 11:30 to 2026-12-17 11:30"
    assert bought.type.startswith("aws ec2 purchase-capacity-block --region us-east-1 --instance-platform ")
    assert "-offering-id cb-140000.00, then -c family=p5 -c nodes=16 -c zone=use1-az6 -c " in bought.type
    spot = [each.found for each in found() if each.how == "spot"]
    assert spot == ["score 3 of 10", "no score"]


def test_a_block_has_ec2s_days_and_nodes() -> None:
    asked: list[dict[str, Any]] = []

    def offerings(given: dict[str, Any]) -> dict[str, Any]:
        asked.append(given)
        return {"CapacityBlockOfferings": []}

    for nodes, days in ((16, 14), (100, 15), (1, 400)):
        rows = found(nodes=nodes, days=days, DescribeCapacityBlockOfferings=offerings)
        assert any(each.found.startswith("Capacity Blocks: none of ") for each in rows)
    asked_for = [(each["InstanceCount"], each["CapacityDurationHours"]) for each in asked]
    assert asked_for == [(16, 14 * 24), (64, 21 * 24), (1, 182 * 24)]


@pytest.mark.parametrize(
    ("operation", "how", "told"),
    [
        ("DescribeCapacityReservations", "not known", "reservations: these credentials lack "),
        ("DescribeCapacityBlockOfferings", "not known", "Capacity Blocks: these credentials lack "),
        ("GetSpotPlacementScores", "spot", "score: these credentials lack "),
        ("DescribeSpotPriceHistory", "spot", "price: these credentials lack "),
        ("DescribeInstanceTypeOfferings", "not known", "zones with the type: these credentials lack "),
        ("GetProducts", "ondemand", "price of the catalog (these credentials lack "),
    ],
)
def test_a_missing_right_hides_nothing_else(operation: str, how: str, told: str) -> None:
    right = f"ec2:{operation}"
    refused = Refused("UnauthorizedOperation", f"User: me is not authorized to perform: {right}")
    answers: dict[str, Any] = {operation: refused}
    rows = found(**answers)
    assert any(each.how == how and f"{told}{right}" in each.found for each in rows)
    others = {"reservation", "block to buy", "spot", "ondemand"}
    lost = {
        "DescribeCapacityReservations": {"reservation"},
        "DescribeCapacityBlockOfferings": {"block to buy"},
        "DescribeInstanceTypeOfferings": {"ondemand"},
    }
    assert others - lost.get(operation, set()) <= {each.how for each in rows}


def test_reservations_for_other_machines_are_left_out() -> None:
    for other in ({"Tenancy": "dedicated"}, {"InstancePlatform": "Windows"}):
        rows = found(DescribeCapacityReservations={"CapacityReservations": [RESERVED | other]})
        assert "reservation" not in {each.how for each in rows}


def test_an_unreachable_region_hides_no_other() -> None:
    account = Account(ANSWERS)

    def clients(region: str) -> Any:
        if region == "eu-none-1":
            raise EndpointConnectionError(endpoint_url="https://ec2.eu-none-1")
        return account.client

    wanted = Wanted(settings=read_settings({"family": "p5"}), days=1)
    asked: dict[str, Any] = {"clients": clients, "pricing": lambda: account.client("pricing")}
    *rows, last = search(wanted, ["us-east-1", "eu-none-1"], **asked)
    assert rows
    assert (last.region, last.how) == ("eu-none-1", "not known")
    with pytest.raises(EndpointConnectionError):  # perhaps there is no network at all
        search(wanted, ["eu-none-1", "us-east-1"], **asked)
    (row,) = found(DescribeAvailabilityZones=Refused("OptInRequired", "You are not subscribed"))
    assert (row.how, row.region) == ("not known", "us-east-1")
    assert "not subscribed" in row.found


def test_the_local_aws_answers(own: OwnAccount, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """All calls, with the account's own reservation of two p4d nodes."""
    own.account.answers["GetProducts"] = {"PriceList": []}
    for module in ("account.session", "price.price_list"):
        monkeypatch.setattr(f"ops.{module}.account_clients", lambda *_: own.client)
    typed = ("capacity", "--family", "p4d", "--nodes", "2", "--days", "3", "--regions", "us-east-1")
    code, said, _ = call(*typed, "--json")
    offers = json.loads(said)["offers"]
    assert code == 0
    assert {each["how"] for each in offers} == {"reservation", "block to buy", "spot", "ondemand"}
    assert offers[0]["type"].endswith(f"-c capacity=reservation:{own.reservation}")
    assert any(each["how"] == "spot" and each["found"] == "score 3 of 10" for each in offers)
    code, said, _ = call(*typed)
    assert code == 0
    assert "USD for 3 d" in said
    assert own.is_untouched
