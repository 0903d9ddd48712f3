"""A quota of the account against what a cluster takes of it."""

from __future__ import annotations

from typing import Any, Protocol

from ops.account.session import unless
from ops.preflight.finding import Finding, judged


class Named(Protocol):
    """A quota of the catalog."""

    @property
    def code(self) -> str: ...  # noqa: D102
    @property
    def name(self) -> str: ...  # noqa: D102


def judge_quota(quota: Named, *, service: str, used: float, wanted: float, client: Any) -> Finding:
    """Say whether it is large enough, and what to type if not.

    Args:
        used: of it, by others than the cluster.
        wanted: what a full cluster takes.
        client: of Service Quotas.
    """
    allowed = _value(service, quota.code, client)
    return judged(
        f"quota: {quota.name}",
        f"{allowed:g}, of which {used:g} used by others, {wanted:g} wanted",
        good=used + wanted <= allowed,
        mend=f"aws service-quotas request-service-quota-increase --service-code {service} "
        f"--quota-code {quota.code} --desired-value {used + wanted:g}",
    )


def _value(service: str, code: str, client: Any) -> float:
    """The account's own value; AWS's default, where nobody ever asked for another."""
    asked = {"ServiceCode": service, "QuotaCode": code}
    own = unless(lambda: client.get_service_quota(**asked), "NoSuchResourceException")
    answer = own or client.get_aws_default_service_quota(**asked)
    return float(answer["Quota"]["Value"])
