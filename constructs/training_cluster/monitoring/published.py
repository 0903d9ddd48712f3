"""Metrics that ParallelCluster publishes for a cluster config. It imports no CDK."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

LAUNCH_FAILURES = (
    "IamPolicyErrors",
    "VcpuLimitErrors",
    "VolumeLimitErrors",
    "InsufficientCapacityErrors",
    "OtherInstanceLaunchFailures",
    "InstanceBootstrapTimeoutErrors",
    "OnNodeConfiguredDownloadErrors",
    "OnNodeConfiguredRunErrors",
)
"""Metrics of filters of its event log (pcluster/templates/cw_dashboard_builder.py, 3.16.1).

The last two exist since our queues have custom actions.
"""
_FROM_ELSEWHERE = 4
"""Metrics of our alarms that others publish: the head node's checks, two of Lustre, braked checks."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """Logs, alarms and dashboards that ParallelCluster makes for the Monitoring section of a final config."""

    logs: bool
    """True with Logs.CloudWatch.Enabled: all metric filters and the head node's agent need it."""
    alarms: bool
    dashboards: bool

    @classmethod
    def by(cls, config: Mapping[str, Any]) -> Self:
        """Read the section; each switch is on by default (pcluster/config/cluster_config.py, 3.16.1)."""
        section = config.get("Monitoring") or {}

        def is_on(*keys: str) -> bool:
            inner = section
            for key in keys:
                inner = inner.get(key) or {}
            return bool(inner.get("Enabled", True))

        return cls(
            logs=is_on("Logs", "CloudWatch"),
            alarms=is_on("Alarms"),
            dashboards=is_on("Dashboards", "CloudWatch"),
        )

    @property
    def heartbeat(self) -> bool:
        """True with clustermgtd's heartbeat, whose filter comes with ParallelCluster's own alarms."""
        return self.logs and self.alarms

    @property
    def launch_failures(self) -> bool:
        """True with the causes of failed launches, whose filters come with ParallelCluster's dashboard."""
        return self.logs and self.dashboards

    @property
    def alarm_metrics(self) -> int:
        """Number of metrics that our alarms read (alarms.py), each of which is paid."""
        return _FROM_ELSEWHERE + self.heartbeat + self.launch_failures * len(LAUNCH_FAILURES)

    @property
    def switched_off(self) -> tuple[str, ...]:
        """Keys of the config that are false."""
        switches = {
            "Logs.CloudWatch": self.logs,
            "Alarms": self.alarms,
            "Dashboards.CloudWatch": self.dashboards,
        }
        return tuple(f"Monitoring.{key}.Enabled" for key, is_on in switches.items() if not is_on)
