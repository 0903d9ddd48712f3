"""Compares a quota of the account with the needs of a cluster."""

from typing import Any

from ops.account.session import ClientOf, unless
from ops.preflight.finding import Finding, finding
from training_cluster.catalog.quotas import Quota, VcpuQuota


def judge_quota(quota: Quota | VcpuQuota, client: ClientOf, *, used: float, wanted: float) -> Finding:
    """Compare a quota with the usage of the full cluster.

    Args:
        used: usage by others than the cluster.
        wanted: usage of a full cluster.
    """
    service = "ec2" if isinstance(quota, VcpuQuota) else quota.service
    allowed = _value(service, quota.code, client("service-quotas"))
    return finding(
        f"quota: {quota.name}",
        f"{allowed:g}, of which {used:g} used by others, {wanted:g} needed",
        good=used + wanted <= allowed,
        mend=f"aws service-quotas request-service-quota-increase --service-code {service} "
        f"--quota-code {quota.code} --desired-value {used + wanted:g}",
    )


def _value(service: str, code: str, client: Any) -> float:
    """Return the account's value, or AWS's default if nobody ever requested another."""
    asked = {"ServiceCode": service, "QuotaCode": code}
    own = unless(lambda: client.get_service_quota(**asked), "NoSuchResourceException")
    answer = own or client.get_aws_default_service_quota(**asked)
    return float(answer["Quota"]["Value"])
