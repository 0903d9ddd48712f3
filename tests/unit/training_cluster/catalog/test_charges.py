"""Monthly costs are the same sums for a deploy that is planned and for resources that remain."""

import pytest

from training_cluster.catalog.charges import (
    aurora,
    efs,
    interface_endpoints,
    lustre,
    nat_gateway,
)
from training_cluster.catalog.families import load_base

PRICES = load_base().prices


def test_hourly_prices_are_for_730_hours() -> None:
    assert nat_gateway(PRICES).usd == pytest.approx((0.045 + 0.005) * 730)
    assert interface_endpoints(PRICES, 7).usd == pytest.approx(7 * 0.01 * 730)
    assert aurora("", PRICES, 0.5).usd == pytest.approx(0.5 * 0.12 * 730)


@pytest.mark.parametrize(
    ("deployment_type", "mbps_per_tib", "usd"),
    [
        ("SCRATCH_2", None, 1200 * 0.14),
        ("PERSISTENT_2", 1000, 1200 * 0.6),
        ("PERSISTENT_2", "1000", 1200 * 0.6),
        ("PERSISTENT_1", 50, None),
    ],
)
def test_lustre_is_priced_by_its_type_and_speed(
    deployment_type: str, mbps_per_tib: int | str | None, usd: float | None
) -> None:
    month = lustre("", PRICES, deployment_type, gib=1200, mbps_per_tib=mbps_per_tib)
    assert month.usd_per_month == (None if usd is None else pytest.approx(usd))


def test_efs_names_only_the_prices_that_it_used() -> None:
    stored, provisioned = PRICES.efs_gb_month, PRICES.efs_mibps_month
    both = efs("", PRICES, gib=100, mibps=10)
    assert both.usd == pytest.approx(100 * stored.usd + 10 * provisioned.usd)
    assert both.prices == (stored, provisioned)
    assert efs("", PRICES, mibps=10).prices == (provisioned,)
    assert efs("", PRICES).usd == 0


def test_a_cost_is_confirmed_with_its_prices() -> None:
    doubtful = PRICES.efs_gb_month.model_copy(update={"source": "unconfirmed: a guess"})
    prices = PRICES.model_copy(update={"efs_gb_month": doubtful})
    assert efs("", PRICES, gib=1).confirmed
    assert efs("", prices, mibps=1).confirmed
    assert not efs("", prices, gib=1, mibps=1).confirmed
