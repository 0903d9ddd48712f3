"""Monthly cost of each store of metrics (the flag `metrics`), by the number of nodes that run all month."""

from dataclasses import dataclass

from training_cluster.catalog.charges import Charge
from training_cluster.catalog.families import load_base
from training_cluster.catalog.prices import Prices
from training_cluster.cluster.fleet import compute_nodes
from training_cluster.cluster.nodes import Rendered
from training_cluster.monitoring.published import Published
from training_cluster.queues.queue import node_types

# Own metrics in CloudWatch: constructs/training_cluster/monitoring/metrics.py.
_STATES, _OF_CLUSTER = 5, 2
_REQUESTS_AN_HOUR, _SCRAPES_AN_HOUR = 30, 120
_SERIES_OF_NODE, _SERIES_OF_ACCELERATOR, _SERIES_OF_CARD, _SERIES_OF_HEAD = 300, 23, 6, 500
"""Time series: a node's own, which a rehearsal counted (280), each GPU's (gpus.py), and each network card's
(bench/subjects/scale_metrics.py)."""
_AMP_FIRST_SAMPLES = 2e9
_SAMPLES = 1e7


@dataclass(frozen=True, kw_only=True)
class MetricsCost:
    """USD a month of each value of the flag `metrics`, while all nodes run."""

    nodes: int
    cloudwatch: float
    prometheus: float
    amp: float
    unconfirmed: bool


def metrics_cost(config: Rendered) -> MetricsCost:
    """Return the cost of a final cluster config, for the nodes of all queues."""
    prices, nodes = load_base().prices, list(compute_nodes(config))
    partitions = len(config["Scheduling"]["SlurmQueues"])
    count = sum(each.most for each in nodes)
    sums = _cloudwatch(prices, count, partitions, Published.by(config).alarm_metrics)
    sizes = [(each.most, node_types(each.types)[0].size) for each in nodes]
    of_cards = sum(
        most * (size.accelerators * _SERIES_OF_ACCELERATOR + size.network_cards * _SERIES_OF_CARD)
        for most, size in sizes
    )
    sent = _amp(prices, count * _SERIES_OF_NODE + of_cards)
    return MetricsCost(
        nodes=count,
        cloudwatch=sums.usd,
        # Its data is on the head node's disk, which is paid anyway.
        prometheus=sums.usd,
        amp=sums.usd + sent.usd,
        unconfirmed=not (sums.confirmed and sent.confirmed),
    )


def _cloudwatch(prices: Prices, nodes: int, partitions: int, of_alarms: int) -> Charge:
    """Return the charge of the metrics that nodes publish every two minutes, and of those of alarms."""
    metrics = _STATES * partitions + _OF_CLUSTER
    requests = (nodes + 1) * _REQUESTS_AN_HOUR * prices.hours_per_month
    metric, thousand = prices.cloudwatch_metric_month, prices.cloudwatch_1000_requests
    alarm = prices.cloudwatch_alarm_metric_month
    usd = metrics * metric.usd + requests / 1000 * thousand.usd + of_alarms * alarm.usd
    return Charge(what="metrics in CloudWatch", usd_per_month=usd, prices=(metric, thousand, alarm))


def _amp(prices: Prices, of_nodes: int) -> Charge:
    """Return the charge of the samples that metrics=amp sends, in addition to CloudWatch's; not of queries.

    Args:
        of_nodes: time series of all nodes.
    """
    samples = (_SERIES_OF_HEAD + of_nodes) * _SCRAPES_AN_HOUR * prices.hours_per_month
    first, beyond = prices.amp_10m_samples, prices.amp_10m_samples_beyond
    usd = min(samples, _AMP_FIRST_SAMPLES) / _SAMPLES * first.usd
    usd += max(0.0, samples - _AMP_FIRST_SAMPLES) / _SAMPLES * beyond.usd
    return Charge(what="samples of metrics=amp", usd_per_month=usd, prices=(first, beyond))


def render_metrics_cost(cost: MetricsCost) -> str:
    """Render one line for people."""
    doubt = " (prices unconfirmed)" if cost.unconfirmed else ""
    return (
        f"Metrics of {cost.nodes} nodes that run all month cost about {cost.cloudwatch:,.0f} USD a month "
        f"with metrics=cloudwatch, {cost.prometheus:,.0f} with prometheus, {cost.amp:,.0f} with amp{doubt}."
    )
