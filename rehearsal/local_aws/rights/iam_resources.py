"""Roles and instance profiles as resources of rights."""

from typing import Any

from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.rights.need import Context, arn, bounded


def role_arn(name: str) -> str:
    """Return the ARN of a role, with its path if the role exists."""
    role = _role(name)
    return str(role["Arn"]) if role else arn("iam", f"role/{name}", region="")


def boundary(role_name: str) -> Context:
    """Return the condition key of a role's permissions boundary; none if it has no boundary."""
    limit = _role(role_name).get("PermissionsBoundary") or {}
    return bounded(limit.get("PermissionsBoundaryArn"))


def profile_arn(name: str) -> str:
    """Return the ARN of an instance profile, with its path if the profile exists."""
    found = profile(name)
    return str(found["Arn"]) if found else arn("iam", f"instance-profile/{name}", region="")


def roles_of_profile(name_or_arn: str) -> list[str]:
    """Return the ARNs of the roles of an instance profile."""
    found = profile(name_or_arn.rpartition("/")[2])
    return [role_arn(each["RoleName"]) for each in found.get("Roles", [])]


def profile(name: str) -> dict[str, Any]:
    """Return an instance profile as IAM describes it; empty if there is none."""
    return _described("get_instance_profile", "InstanceProfile", InstanceProfileName=name)


def _role(name: str) -> dict[str, Any]:
    return _described("get_role", "Role", RoleName=name)


def _described(operation: str, kind: str, **name: str) -> dict[str, Any]:
    """Return a resource as IAM describes it; empty if there is none."""
    iam = client("iam")
    try:
        return dict(getattr(iam, operation)(**name)[kind])
    except iam.exceptions.NoSuchEntityException:
        return {}
