"""Cost of the stores of metrics: what docs/costs.md says."""

import dataclasses
import re

import pytest

from ops.price.metrics import metrics_cost, render_metrics_cost
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings


@pytest.mark.parametrize("nodes", [1, 16, 256])
def test_the_page_has_the_costs_of_each_store(nodes: int) -> None:
    cost = metrics_cost(read_settings({"family": "p5"}), nodes)
    row = re.search(
        rf"^\| {nodes} \| (\d+) \| (\d+) \| (\d+) \|$", (ROOT / "docs/costs.md").read_text(), re.M
    )
    assert row
    assert [int(each) for each in row.groups()] == [
        round(each) for each in (cost.cloudwatch, cost.prometheus, cost.amp)
    ]


def test_doubt_about_prices_is_said() -> None:
    cost = metrics_cost(read_settings({"nodes": "4"}))
    line = render_metrics_cost(cost)
    assert line.startswith("Metrics of 4 nodes")
    assert "unconfirmed" not in line
    assert "unconfirmed" in render_metrics_cost(dataclasses.replace(cost, unconfirmed=True))


def test_the_readme_has_the_pages_costs() -> None:
    costs = [metrics_cost(read_settings({"family": "p5"}), nodes) for nodes in (1, 16, 256)]
    readme = " ".join((ROOT / "README.md").read_text().split())
    for store in ("cloudwatch", "amp"):
        one, some, many = (round(getattr(cost, store)) for cost in costs)
        assert f"{one}, {some} and {many}" in readme
