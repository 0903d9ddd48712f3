"""The names in the account that a cluster needs: its CloudFormation stack's and its key pair's.

A stack of another app would stop the deploy at its end. A key pair would be lost: CloudFormation deletes it
when its own creation of that name fails (aws-cloudformation/cloudformation-coverage-roadmap issue 1493).
"""

from __future__ import annotations

from typing import Any

from parent_stack import find_stack

_OWNER_TAG = "training-cluster:stack-id"
_CLUSTER_TAG = "training-cluster:cluster"


def taken(cluster: dict[str, str], cloudformation: Any, ec2: Any) -> list[str]:
    """Explain each name of a cluster that somebody else has. Raises botocore's errors.

    Args:
        cluster: its `Name`, its own `Stack`, and the `KeyPair` that this stack creates, or "".
    """
    name, own, key = cluster["Name"], cluster["Stack"], cluster["KeyPair"]
    found = []
    if stack := find_stack(name, cloudformation):
        maker = find_stack(own, cloudformation)
        if maker is None or _tags(stack).get(_OWNER_TAG) != maker["StackId"]:
            found.append(
                f"A stack named {name} exists already and was not made by {own}, whose cluster needs this "
                f"name. Type: {another(name)}"
            )
    pairs = ec2.describe_key_pairs(Filters=[{"Name": "key-name", "Values": [key]}]) if key else {}
    if any(_tags(each).get(_CLUSTER_TAG) != name for each in pairs.get("KeyPairs", [])):
        found.append(
            f"A key pair named {key} exists already and was not made by {own}. Type: {another(name)}, or, to "
            f"use it, if it is an ED25519 key: -c key_name={key}"
        )
    return found


def another(name: str) -> str:
    """Return the flag of a cluster with another name, for trainctl, too."""
    return f"-c cluster_name={name[:38]}-2"


def _tags(resource: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in resource.get("Tags", [])}
