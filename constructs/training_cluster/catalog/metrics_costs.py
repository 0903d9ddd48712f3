"""Monthly cost of each store of metrics (the flag `metrics`), by the number of nodes that run all month."""

from training_cluster.catalog.charges import Charge
from training_cluster.catalog.prices import Prices

# Own metrics in CloudWatch: constructs/training_cluster/monitoring/metrics.py.
_STATES, _OF_CLUSTER = 5, 2
ALARM_METRICS = 13
"""Metrics that the alarms read (monitoring/alarms.py)."""
_REQUESTS_AN_HOUR, _SCRAPES_AN_HOUR = 30, 120
SERIES_OF_NODE, SERIES_OF_ACCELERATOR, SERIES_OF_HEAD = 300, 23, 500
"""Time series: a node's own, which a rehearsal counted (280), and each GPU's (gpus.py)."""
_AMP_FIRST_SAMPLES = 2e9
_SAMPLES = 1e7


def cloudwatch(prices: Prices, *, nodes: int, partitions: int = 1) -> Charge:
    """Return the charge of the metrics that nodes publish every two minutes, and of the alarms."""
    metrics = _STATES * partitions + _OF_CLUSTER
    requests = (nodes + 1) * _REQUESTS_AN_HOUR * prices.hours_per_month
    metric, thousand = prices.cloudwatch_metric_month, prices.cloudwatch_1000_requests
    alarm = prices.cloudwatch_alarm_metric_month
    usd = metrics * metric.usd + requests / 1000 * thousand.usd + ALARM_METRICS * alarm.usd
    return Charge(what="metrics in CloudWatch", usd_per_month=usd, prices=(metric, thousand, alarm))


def amp(prices: Prices, *, nodes: int, accelerators: int) -> Charge:
    """Return the charge of the samples that metrics=amp sends, in addition to CloudWatch's; not of queries.

    Args:
        accelerators: GPUs of a node.
    """
    series = SERIES_OF_HEAD + nodes * (SERIES_OF_NODE + accelerators * SERIES_OF_ACCELERATOR)
    samples = series * _SCRAPES_AN_HOUR * prices.hours_per_month
    first, beyond = prices.amp_10m_samples, prices.amp_10m_samples_beyond
    usd = min(samples, _AMP_FIRST_SAMPLES) / _SAMPLES * first.usd
    usd += max(0.0, samples - _AMP_FIRST_SAMPLES) / _SAMPLES * beyond.usd
    return Charge(what="samples of metrics=amp", usd_per_month=usd, prices=(first, beyond))
