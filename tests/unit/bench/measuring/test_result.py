"""Rows of the page of benchmarks: medians, their spread, and their goals."""

import pytest

from bench.measuring import result


def test_a_spread_is_the_median_with_the_lowest_and_the_highest_run() -> None:
    assert result.spread([3.0, 1.0, 2.0], " s", digits=1) == "2.0 s (1.0 to 3.0, 3 runs)"


@pytest.mark.parametrize(
    ("values", "at_most", "at_least"),
    [([0.5, 0.9, 9.0], "met", "missed"), ([1.0], "met", "met"), ([0.1, 1.1, 1.2], "missed", "met")],
)
def test_the_median_is_compared_with_the_goal(values: list[float], at_most: str, at_least: str) -> None:
    rows = (result.at_most("a", values, 1.0), result.at_least("a", values, 1.0))
    assert [(row.goal, row.verdict) for row in rows] == [("<= 1x", at_most), (">= 1x", at_least)]
