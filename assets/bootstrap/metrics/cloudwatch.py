"""This node's metrics in CloudWatch, sent by the `aws` command of ParallelCluster's images.

Runs on Python 3.9 (Amazon Linux 2023) and later, with only the standard library.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from dataclasses import dataclass, field
from typing import Any

NAMESPACE = "TrainingCluster"
TIMEOUT_S = 20
INTERVAL_S, PUBLISHED_EVERY_S = 30, 120
"""Seconds between two runs with text files, and between two that publish (steps/85-start-timers.sh).

The `aws` command takes six times the CPU time of a whole run without it (docs/how-to/monitoring.md).
"""


@dataclass(frozen=True)
class Metric:
    """One or more current values of one metric.

    Values of several nodes with the same name are one metric: CloudWatch aggregates their statistics, so a
    thousand nodes cost as much as one.
    """

    name: str
    values: list[float]
    unit: str
    dimensions: dict[str, str] = field(default_factory=dict)


def parser(*positional: str) -> argparse.ArgumentParser:
    """Return the parser of what all programs take, and of a program's own positional arguments."""
    found = argparse.ArgumentParser()
    for name in positional:
        found.add_argument(name)
    found.add_argument("--cluster", required=True)
    found.add_argument("--region", required=True)
    found.add_argument("--textfiles", help="folder of node_exporter's text files")
    found.add_argument("--no-cloudwatch", action="store_true", help="publish nothing")
    return found


def is_due(asked: argparse.Namespace) -> bool:
    """Return True every PUBLISHED_EVERY_S: with text files a program runs more often."""
    is_first_run = not asked.textfiles or time.time() % PUBLISHED_EVERY_S < INTERVAL_S
    return is_first_run and not asked.no_cloudwatch


def publish(metrics: list[Metric], *, cluster: str, region: str) -> None:
    """Send all metrics to CloudWatch in one request.

    Raises:
        subprocess.CalledProcessError, subprocess.TimeoutExpired: CloudWatch did not accept them.
    """
    data = [_datum(metric, cluster) for metric in metrics if metric.values]
    if data:
        subprocess.run(
            [
                *("aws", "cloudwatch", "put-metric-data", "--region", region, "--namespace", NAMESPACE),
                *("--metric-data", json.dumps(data)),
            ],
            check=True,
            timeout=TIMEOUT_S,
        )


def _datum(metric: Metric, cluster: str) -> dict[str, Any]:
    dimensions = {"ClusterName": cluster, **metric.dimensions}
    return {
        "MetricName": metric.name,
        "Dimensions": [{"Name": name, "Value": value} for name, value in dimensions.items()],
        "Unit": metric.unit,
        "StatisticValues": {
            "SampleCount": len(metric.values),
            "Sum": sum(metric.values),
            "Minimum": min(metric.values),
            "Maximum": max(metric.values),
        },
    }
