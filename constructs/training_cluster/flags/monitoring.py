"""Flags of monitoring: the store of metrics, and where alerts go."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel

from training_cluster.flags.flag import flag

_WORKSPACE = r"arn:aws:aps:([a-z0-9-]+):\d{12}:workspace/(ws-[0-9a-f-]{36})"


class MonitoringFlags(BaseModel):
    """Flags of a cluster's metrics and alerts."""

    metrics: Literal["cloudwatch", "prometheus", "amp"] = flag(
        "cloudwatch",
        description="Store of the metrics that name node, job and user (docs/how-to/monitoring.md): "
        "cloudwatch, sums of the cluster alone; prometheus, on the head node for 15 days, with alerts; amp, "
        "the same for one day and in the workspace of metrics_workspace. Needs Ubuntu.",
        on_change="live on the head node; nodes get it when they start. alarm_email's topic is a new one, "
        "which has to be confirmed",
    )
    metrics_workspace: str | None = flag(
        None,
        pattern=f"^{_WORKSPACE}$",
        takes="an ARN such as arn:aws:aps:us-east-1:123456789012:workspace/ws-01234567-0123-...",
        example="arn:aws:aps:us-east-1:123456789012:workspace/ws-01234567-0123-4567-89ab-0123456789ab",
        description="ARN of the workspace in Amazon Managed Service for Prometheus, with metrics=amp.",
        on_change="live: metrics go to the other workspace",
    )
    alert_webhook_secret: str | None = flag(
        None,
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:\S+$",
        takes="an ARN such as arn:aws:secretsmanager:us-east-1:123456789012:secret:name-AbCdEf",
        example="arn:aws:secretsmanager:us-east-1:123456789012:secret:webhook-AbCdEf",
        description="ARN of the Secrets Manager secret that holds the address of a webhook in Slack's form, "
        "as plain text. Alerts of metrics=prometheus and amp go there, too.",
        on_change="live: the head node reads the address again",
    )


def remote_write_url(workspace_arn: str | None) -> str:
    """Return the address of a workspace; empty without one."""
    if not workspace_arn:
        return ""
    found = re.fullmatch(_WORKSPACE, workspace_arn)
    assert found, "the flag's pattern"
    return f"https://aps-workspaces.{found[1]}.amazonaws.com/workspaces/{found[2]}"
