"""Capacity reservations of the local AWS: a Capacity Block begins and ends by the clock."""

import datetime

import pytest

from rehearsal.local_aws.ec2.capacity_reservations import BLOCK, Reservation, in_utc, now

DAY = datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("kind", "begins", "ends", "cancelled", "state"),
    [
        (BLOCK, DAY, 2 * DAY, False, "scheduled"),
        (BLOCK, -DAY, DAY, False, "active"),
        (BLOCK, -2 * DAY, -DAY, False, "expired"),
        ("default", -DAY, None, True, "cancelled"),
    ],
)
def test_reservation_has_the_state_of_its_time(
    kind: str, begins: datetime.timedelta, ends: datetime.timedelta | None, cancelled: bool, state: str
) -> None:
    # moto parses a request's times without a zone; comparing one with a time in UTC would raise.
    start = in_utc((now() + begins).replace(tzinfo=None))
    assert start
    reservation = Reservation(
        instance_type="p5.48xlarge",
        zone="us-east-1a",
        count=2,
        kind=kind,
        start=start,
        end=None if ends is None else now() + ends,
    )
    reservation.cancelled = cancelled
    assert reservation.state == state
