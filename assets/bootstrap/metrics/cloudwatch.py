"""Puts metrics of this node into CloudWatch, with the `aws` command that ParallelCluster's images bring.

Runs on Python 3.9 (Amazon Linux 2023) and later, with the standard library alone.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from dataclasses import dataclass, field
from typing import Any

NAMESPACE = "TrainingCluster"
TIMEOUT_S = 20


@dataclass(frozen=True)
class Metric:
    """One value or many of one metric, of this minute.

    Values of several nodes under the same name are one metric: CloudWatch adds up their statistics, so it
    costs the same for a thousand nodes as for one.
    """

    name: str
    values: list[float]
    unit: str
    dimensions: dict[str, str] = field(default_factory=dict)


def arguments(*positional: str) -> argparse.Namespace:
    """Read the command line: which cluster, which region, and what a program asks for itself."""
    parser = argparse.ArgumentParser()
    for name in positional:
        parser.add_argument(name)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--region", required=True)
    return parser.parse_args()


def publish(metrics: list[Metric], *, cluster: str, region: str) -> None:
    """Put them all with one request.

    Raises:
        subprocess.CalledProcessError, subprocess.TimeoutExpired: CloudWatch did not take them.
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
