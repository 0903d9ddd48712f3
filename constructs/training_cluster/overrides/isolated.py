"""Clusters in a network without internet, by the key that ParallelCluster has for them."""

from typing import Any

from training_cluster.flags.settings import Settings
from training_cluster.overrides.file import read_overrides


def is_isolated(settings: Settings) -> bool:
    """Return True where overrides leave Route 53 out, which has no endpoint: Dns.DisableManagedDns."""
    value: Any = read_overrides(settings.overrides).content if settings.overrides else {}
    for key in ("Scheduling", "SlurmSettings", "Dns", "DisableManagedDns"):
        value = value.get(key) if isinstance(value, dict) else None
    return value is True
