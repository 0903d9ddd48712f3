"""Flags of monitoring: the store of metrics, and where alerts go."""

import re
from typing import Literal

from pydantic import BaseModel, field_validator

from training_cluster.flags.account import MAIL_ADDRESS, split_list
from training_cluster.flags.flag import flag

_WORKSPACE = r"arn:aws:aps:([a-z0-9-]+):\d{12}:workspace/(ws-[0-9a-f-]{36})"

_USER = r"[a-z_][a-z0-9_-]{0,31}"


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
    job_emails: str | None = flag(
        None,
        takes="ADDRESS or USER=ADDRESS, comma separated",
        example="ann=ann@example.com,bob=bob@example.com",
        description="Addresses that get mail of jobs submitted with --notify mail: an address alone of all "
        "jobs, USER=ADDRESS of this user's. AWS first sends each a link. Default: jobs send no mail.",
        on_change="live: a new address gets a mail to confirm; nodes know it with their next job",
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

    @field_validator("job_emails")
    @classmethod
    def _are_addresses(cls, value: str | None) -> str | None:
        for user, address in mails_of(value):
            if not re.fullmatch(MAIL_ADDRESS, address) or not re.fullmatch(
                _USER, "all" if user is None else user
            ):
                given = f"{user}={address}" if user is not None else address
                raise ValueError(f'"{given}" is not ADDRESS or USER=ADDRESS')
        return value


def mails_of(job_emails: str | None) -> tuple[tuple[str | None, str], ...]:
    """Return user and address of each entry; the user is None for an address of all jobs.

    Raises:
        ValueError: an entry is empty or given twice.
    """
    entries = (each.rpartition("=") for each in split_list(job_emails))
    return tuple((user if equals else None, address) for user, equals, address in entries)


def remote_write_url(workspace_arn: str | None) -> str:
    """Return the address of a workspace; empty without one."""
    if not workspace_arn:
        return ""
    found = re.fullmatch(_WORKSPACE, workspace_arn)
    assert found, "the flag's pattern"
    return f"https://aps-workspaces.{found[1]}.amazonaws.com/workspaces/{found[2]}"
