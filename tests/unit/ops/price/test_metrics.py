"""Cost of the stores of metrics: what docs/costs.md says."""

from ops.price.metrics import metrics_cost
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
