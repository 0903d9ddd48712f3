"""Clusters in a network without internet, by the key that ParallelCluster has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from training_cluster.overrides.file import read_overrides

if TYPE_CHECKING:
    from training_cluster.flags.settings import Settings


def is_isolated(settings: Settings) -> bool:
    """Return True where overrides leave Route 53 out, which has no endpoint: Dns.DisableManagedDns."""
    value: Any = read_overrides(settings.overrides).content if settings.overrides else {}
    for key in ("Scheduling", "SlurmSettings", "Dns", "DisableManagedDns"):
        value = value.get(key) if isinstance(value, dict) else None
    return value is True
