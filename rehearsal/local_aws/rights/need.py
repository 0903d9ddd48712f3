"""One right that a call needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rehearsal.local_aws.address import ACCOUNT, REGION

Context = Mapping[str, str | list[str]]
"""Condition keys of a call with their values."""


@dataclass(frozen=True, kw_only=True)
class Need:
    """An action on a resource, with the condition keys of the call."""

    action: str
    """Action as `service:Action`."""
    resource: str = "*"
    """ARN, or * for an action without resources."""
    context: Context = field(default_factory=dict)

    @property
    def service(self) -> str:
        """Prefix of the action, such as ec2."""
        return self.action.partition(":")[0]


def arn(service: str, resource: str, *, region: str = REGION, account: str = ACCOUNT) -> str:
    """Return an ARN of the local AWS."""
    return f"arn:aws:{service}:{region}:{account}:{resource}"


def bounded(boundary: str | None) -> Context:
    """Return the condition key of IAM for a role with this permissions boundary."""
    return {"iam:PermissionsBoundary": boundary} if boundary else {}
