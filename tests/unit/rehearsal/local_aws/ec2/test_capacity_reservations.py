"""Capacity reservations of the local AWS: a Capacity Block begins and ends by the clock."""

import datetime

import pytest

from rehearsal.local_aws.ec2.capacity_reservations import BLOCK, Reservation, in_utc, now

DAY = datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("begins_in", "ends_in", "state"),
    [(DAY, 2 * DAY, "scheduled"), (-DAY, DAY, "active"), (-2 * DAY, -DAY, "expired")],
)
def test_a_block_has_the_state_of_its_time(
    begins_in: datetime.timedelta, ends_in: datetime.timedelta, state: str
) -> None:
    block = Reservation(
        instance_type="p5.48xlarge",
        zone="us-east-1a",
        count=2,
        kind=BLOCK,
        start=now() + begins_in,
        end=now() + ends_in,
    )
    assert block.state == state


def test_an_on_demand_reservation_is_active_until_it_is_cancelled() -> None:
    reservation = Reservation(instance_type="p5.48xlarge", zone="us-east-1a", count=2)
    assert reservation.state == "active"
    reservation.cancelled = True
    assert reservation.state == "cancelled"


def test_a_time_without_a_zone_is_utc() -> None:
    # moto parses a request's times so; comparing one with a time in UTC would raise.
    parsed = in_utc(datetime.datetime(2026, 11, 20, 11, 30))
    assert parsed and parsed < now() + 10_000 * DAY
    assert in_utc(None) is None
