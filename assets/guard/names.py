"""The names in the account that a cluster needs: its CloudFormation stacks' and its key pair's.

A stack of another app would stop the deploy at its end. A key pair would be lost: CloudFormation deletes it
when its own creation of that name fails (aws-cloudformation/cloudformation-coverage-roadmap issue 1493).
"""

from __future__ import annotations

import re
from typing import Any

from parent_stack import find_stack

# The description of stacks/training_cluster_stack.py: the CDK gives a stack itself no tags.
_DESCRIPTION = re.compile(r"Training Cluster: the cluster ([a-z0-9-]+),")
NOTHING_THERE = ("REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_COMPLETE")
"""Statuses of a stack that a deploy creates anew, for trainctl, too."""
_OWNER_TAG = "training-cluster:stack-id"
_CLUSTER_TAG = "training-cluster:cluster"


def taken(cluster: dict[str, str], cloudformation: Any, ec2: Any) -> list[str]:
    """Explain each name of a cluster that somebody else, or another cluster, has. Raises botocore's errors.

    Args:
        cluster: its `Name`, its own `Stack`, and the `KeyPair` that this stack creates, or "".
    """
    name, own, key = cluster["Name"], cluster["Stack"], cluster["KeyPair"]
    found, maker = [], find_stack(own, cloudformation)
    there = name_kept_by(maker or {}) or name
    if there != name:  # a stack that has two names
        return [kept(own, there)]
    stack = find_stack(name, cloudformation)
    if stack and (maker is None or _tags(stack).get(_OWNER_TAG) != maker["StackId"]):
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


def kept(stack: str, name: str) -> str:
    """Explain that the cluster of a stack cannot get another name."""
    return (
        f"{stack} has the cluster {name}, which keeps its name. Type: -c cluster_name={name}, or, for a "
        f"second cluster, {another(name)}"
    )


def cluster_in(stack: dict[str, Any]) -> str | None:
    """Return the name of the cluster that a stack describes, for trainctl, too; None for another stack."""
    found = _DESCRIPTION.match(stack.get("Description", ""))
    return found and found[1]


def name_kept_by(stack: dict[str, Any]) -> str | None:
    """Return the name that the cluster of a stack keeps, for trainctl, too; None if it keeps none."""
    return None if stack.get("StackStatus") in NOTHING_THERE else cluster_in(stack)


def another(name: str) -> str:
    """Return the flag of a cluster with another name, for trainctl, too."""
    return f"-c cluster_name={name[:38]}-2"


def _tags(resource: dict[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in resource.get("Tags", [])}
