"""Cost of the stores of metrics, for a quote."""

from dataclasses import dataclass

from training_cluster.catalog.families import load_base
from training_cluster.catalog.metrics_costs import amp, cloudwatch
from training_cluster.flags.settings import Settings


@dataclass(frozen=True, kw_only=True)
class MetricsCost:
    """USD a month of each value of the flag `metrics`, while all nodes run."""

    nodes: int
    cloudwatch: float
    prometheus: float
    amp: float
    unconfirmed: bool


def metrics_cost(settings: Settings, nodes: int | None = None) -> MetricsCost:
    """Return the cost for a number of nodes; by default the nodes of all queues."""
    prices, count = load_base().prices, settings.most_nodes if nodes is None else nodes
    partitions = len(settings.all_queues)
    sums = cloudwatch(prices, nodes=count, partitions=partitions)
    sent = amp(prices, nodes=count, accelerators=settings.size.accelerators)
    return MetricsCost(
        nodes=count,
        cloudwatch=sums.usd,
        # Its data is on the head node's disk, which is paid anyway.
        prometheus=sums.usd,
        amp=sums.usd + sent.usd,
        unconfirmed=not (sums.confirmed and sent.confirmed),
    )


def render_metrics_cost(cost: MetricsCost) -> str:
    """Render one line for people."""
    doubt = " (prices unconfirmed)" if cost.unconfirmed else ""
    return (
        f"Metrics of {cost.nodes} nodes that run all month cost about {cost.cloudwatch:,.0f} USD a month "
        f"with metrics=cloudwatch, {cost.prometheus:,.0f} with prometheus, {cost.amp:,.0f} with amp{doubt}."
    )
