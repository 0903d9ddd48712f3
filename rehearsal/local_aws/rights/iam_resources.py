"""Roles and instance profiles as resources of rights."""

from typing import Any

from rehearsal.local_aws.emulators import hooks, ministack_hooks
from rehearsal.local_aws.rights.need import Context, arn, bounded


def role_arn(name: str) -> str:
    """Return the ARN of a role, with its path if the role exists."""
    role = hooks.find(ministack_hooks.ROLES).get(name)
    return str(role["Arn"]) if role else arn("iam", f"role/{name}", region="")


def boundary(role_name: str) -> Context:
    """Return the condition key of a role's permissions boundary; none if it has no boundary."""
    role = hooks.find(ministack_hooks.ROLES).get(role_name) or {}
    return bounded(role.get("PermissionsBoundary"))


def profile_arn(name: str) -> str:
    """Return the ARN of an instance profile, with its path if the profile exists."""
    profile = _profile(name)
    return str(profile["Arn"]) if profile else arn("iam", f"instance-profile/{name}", region="")


def roles_of_profile(name_or_arn: str) -> list[str]:
    """Return the ARNs of the roles of an instance profile."""
    profile = _profile(name_or_arn.rpartition("/")[2]) or {}
    return [role_arn(_name_of(each)) for each in profile.get("Roles", [])]


def _name_of(role: Any) -> str:
    return str(role["RoleName"] if isinstance(role, dict) else role)


def _profile(name: str) -> dict[str, Any] | None:
    found: dict[str, Any] | None = hooks.find(ministack_hooks.INSTANCE_PROFILES).get(name)
    return found
