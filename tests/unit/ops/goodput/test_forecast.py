"""Tests of the forecast of interruptions."""

import random
import re

import pytest

from ops.goodput.forecast import best_interval, forecast, rates_of, spares_worth, train_share
from tests.unit.ops.jobs_head_node import Call


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


def test_price_prints_llamas_forecast(call: Call) -> None:
    flags = "--offline --days 30 --save-s 60 -c family=p5 -c nodes=64".split()
    code, output, _ = call("price", *flags)
    (found,) = re.findall(r"\nIn 30 days expect ([\d.]+) interruptions\. With a save every (\d+) min", output)
    interruptions = 419 / 54 / 2048 * 64 * 30
    every_s = (2 * 60 * 30 * 86400 / interruptions) ** 0.5
    assert (code, found) == (0, (f"{interruptions:.1f}", f"{every_s / 60:.0f}"))
    assert "\n  rate: Meta, The Llama 3 Herd of Models (2024), section 3.3.4: 419 " in output
    assert "\n  a save takes 60 s (measured); a restart takes 600 s (assumed: --restart-s); " in output


def test_price_forecasts_with_the_saves_size(call: Call) -> None:
    for given, took in (
        ("-c family=p5 -c nodes=64", "2709 s (estimated from its size"),
        ("titan --set SIZE=70B -c family=p5 -c nodes=64", "2890 s (estimated from its size"),
        ("-c family=p5 -c fsx_id=fs-0123456789abcdef0", "60 s (assumed: --save-s)"),
    ):
        output = call("price", "--offline", "--days", "30", *given.split())[1]
        assert f"\n  a save takes {took}" in output


def test_rates_and_spares_grow_with_nodes() -> None:
    whole, small = (rates_of("p5", accelerators=each, is_spot=True) for each in (8, 1))
    assert small[0].source.endswith("; scaled from 8 accelerators a node to 1")
    assert (small[1], small[0].per_node_day) == (whole[1], whole[0].per_node_day / 8)
    (rate,) = rates_of("m6i", accelerators=0, is_spot=False)
    assert (rate.per_node_day, "no rate is recorded here for m6i" in rate.source) == (0.0065, True)
    assert spares_worth(nodes=2, per_node_day=0.0065) == 0
    assert spares_worth(nodes=512, per_node_day=0.0065) == 2
    rates = rates_of("p5", accelerators=8, is_spot=False)
    for save_s, restart_s, trains in (
        (60, 600, True),
        (1e6, 600, False),
        (2e5, 600, False),
        (60, 1e6, False),
    ):
        result = forecast(rates, nodes=64, days=1, save_s=save_s, restart_s=restart_s)
        assert (result.train_share > 0) == ("leaves no time" not in result.facts[-1]) == trains
