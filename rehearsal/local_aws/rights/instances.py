"""Instances as resources of rights: ARNs, tags, and the roles that launch templates pass."""

from typing import Any

from rehearsal.local_aws.emulators.moto_types import ec2
from rehearsal.local_aws.rights.need import Context, arn


def instance_arn(instance_id: str) -> str:
    """Return the ARN of an instance."""
    return arn("ec2", f"instance/{instance_id}")


def tags(instance_id: str) -> Context:
    """Return the condition keys of an instance's tags; none if there is no such instance."""
    found = ec2().describe_tags(filters={"resource-id": [instance_id]})
    return {
        f"{service}:ResourceTag/{each['key']}": each["value"] for service in ("aws", "ec2") for each in found
    }


def profile_of_template(specification: dict[str, Any]) -> str:
    """Return the name or ARN of the instance profile in a launch template; empty if it has none.

    Args:
        specification: a resource's property with the LaunchTemplateId, which all of ParallelCluster's have.
    """
    template = ec2().launch_templates.get(specification.get("LaunchTemplateId"))
    profile = (template.latest_version().data.get("IamInstanceProfile") if template else None) or {}
    return str(profile.get("Arn") or profile.get("Name") or "")
