"""Rules about metrics: the store's requirements."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from training_cluster.problems import Contradiction

if TYPE_CHECKING:
    from training_cluster.flags.settings import Settings


def _os_has_the_packages(settings: Settings) -> Iterator[Contradiction]:
    if settings.metrics != "cloudwatch" and settings.os_name == "alinux2023":
        yield Contradiction(
            problem=f"metrics={settings.metrics} with os=alinux2023: no repository of Amazon Linux 2023 "
            "is known to have Prometheus and node_exporter, Ubuntu's have",
            mend=f"-c metrics={settings.metrics} -c os=ubuntu2204, or -c metrics=cloudwatch",
        )


def _workspace_is_for_amp(settings: Settings) -> Iterator[Contradiction]:
    if settings.metrics == "amp" and not settings.metrics_workspace:
        yield Contradiction(
            problem="metrics=amp: metrics_workspace, which gets the metrics, is missing",
            mend="-c metrics=amp -c metrics_workspace=ARN; to create one: aws amp create-workspace",
        )
    if settings.metrics_workspace and settings.metrics != "amp":
        yield Contradiction(
            problem=f"metrics_workspace with metrics={settings.metrics}, which sends nothing there",
            mend="-c metrics=amp, or leave metrics_workspace out",
        )


def _webhook_has_alerts(settings: Settings) -> Iterator[Contradiction]:
    if settings.alert_webhook_secret and settings.metrics == "cloudwatch":
        yield Contradiction(
            problem="alert_webhook_secret with metrics=cloudwatch, whose alarms go only to alarm_email",
            mend="-c metrics=prometheus, or leave alert_webhook_secret out",
        )


MONITORING_RULES = (_os_has_the_packages, _workspace_is_for_amp, _webhook_has_alerts)
