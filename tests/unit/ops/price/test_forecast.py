"""Tests of the forecast of interruptions."""

import random

import pytest

from ops.price.forecast import best_interval, forecast, rates_of, spares_worth, train_share
from ops.usage import UsageError
from training_cluster.rules.context import read_settings


def _simulated_share(every_s: float, *, save_s: float, between_s: float, restart_s: float) -> float:
    generator, trained, paid = random.Random(7), 0.0, 0.0
    for _ in range(20_000):
        up = generator.expovariate(1 / between_s)
        trained += up // (every_s + save_s) * every_s
        paid += up + restart_s
    return trained / paid


def test_formula_meets_a_simulation() -> None:
    times = {"save_s": 60.0, "between_s": 40_000.0, "restart_s": 600.0}
    best = best_interval(save_s=60, between_s=40_000)
    simulated = {factor: _simulated_share(best * factor, **times) for factor in (0.5, 1.0, 2.0)}
    assert max(simulated, key=lambda factor: simulated[factor]) == 1.0
    assert train_share(every_s=best, **times) == pytest.approx(simulated[1.0], abs=0.01)


def test_forecast_counts_llama_interruptions() -> None:
    settings = read_settings({"family": "p5", "nodes": "64"})
    result = forecast(settings, days=30, save_s=60, restart_s=600)
    assert result.interruptions == pytest.approx(419 / 54 / 2048 * 64 * 30, rel=0.01)
    assert "Llama 3" in result.sources[0]
    assert len(result.assumed) == 1


def test_unpublished_family_is_named() -> None:
    assert "no rate is recorded here for trn2" in rates_of("trn2", is_spot=False)[0].source
    assert len(rates_of("p5", is_spot=True)) == 2


def test_spares_grow_with_nodes() -> None:
    assert spares_worth(nodes=2, per_node_day=0.0065) == 0
    assert spares_worth(nodes=512, per_node_day=0.0065) == 2


def test_save_longer_than_interruptions_is_refused() -> None:
    with pytest.raises(UsageError, match="--save-s"):
        forecast(read_settings({"family": "p5", "nodes": "64"}), days=1, save_s=1e6)
