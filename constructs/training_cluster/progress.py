"""Where the provider writes down what it is at; read by `make status`."""

from __future__ import annotations


def progress_parameter(cluster_name: str) -> str:
    """Name of the SSM parameter: JSON, as assets/cluster_provider/record.py writes it."""
    return f"/training-cluster/clusters/{cluster_name}/progress"
