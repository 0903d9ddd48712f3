"""Cost of the stores of metrics: what docs/costs.md says."""

import dataclasses

from ops.price.metrics import metrics_cost, render_metrics_cost
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings


def test_the_pages_have_the_costs_of_each_store() -> None:
    page, readme = ((ROOT / name).read_text() for name in ("docs/costs.md", "README.md"))
    settings = read_settings({"family": "p5"})
    costs = {nodes: metrics_cost(settings, nodes) for nodes in (1, 16, 256)}
    for nodes, cost in costs.items():
        sums = " | ".join(f"{each:.0f}" for each in (cost.cloudwatch, cost.prometheus, cost.amp))
        assert f"\n| {nodes} | {sums} |\n" in page
    for store in ("cloudwatch", "amp"):
        one, some, many = (round(getattr(cost, store)) for cost in costs.values())
        assert f"{one}, {some} and {many}" in " ".join(readme.split())


def test_doubt_about_prices_is_said() -> None:
    cost = metrics_cost(read_settings({"nodes": "4"}))
    line = render_metrics_cost(cost)
    assert line.startswith("Metrics of 4 nodes")
    assert "unconfirmed" not in line
    assert "unconfirmed" in render_metrics_cost(dataclasses.replace(cost, unconfirmed=True))
