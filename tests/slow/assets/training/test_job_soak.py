"""Jobs of two users on a busy cluster whose nodes, daemons, ranks and disk fail at random, by seed."""

import pytest

from tests.slow.assets.training.soak import soak

pytestmark = pytest.mark.slow

SEEDS = [*range(1, 4), *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(4, 21))]


@pytest.mark.parametrize("seed", SEEDS)
def test_every_job_finishes_once(seed: int) -> None:
    result = soak(seed, is_scaled=True)
    assert not result.wrong, result.line()
