"""Lambda entry of Custom::Guard: fails an update that would replace a resource with data, before any change.

The resources with data depend on this custom resource, so CloudFormation updates it first. It creates,
stores and deletes nothing: the event has the old and the new values. A guard that is created in an
existing stack is in another app's stack: `cdk deploy` updates any stack that has the name.

With `Cluster`, in the first stack of a deploy and again in the cluster's own, it also fails a deploy that
leaves out flags of the cluster's last deploy, or needs a name that somebody else has.
"""

from __future__ import annotations

from typing import Any

import boto3
import names
import parent_stack
from transitions import WITHOUT_CLUSTERS, Values, forgotten_flags, refusal, refused_changes

PHYSICAL_ID = "guard"
"""Constant physical id: CloudFormation would take another one as a replacement, and send a Delete."""


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Refuse an update that would replace a resource with data, and a change of another app's stack.

    A rollback is an update with old and new values swapped. It is always allowed: it restores the former
    values, and a stack is stuck if its rollback fails.

    Raises:
        RuntimeError: the event is refused; nothing was changed. The text is for the person who deploys.
    """
    cluster = event["ResourceProperties"].get("Cluster", {})
    if event["RequestType"] == "Create" and parent_stack.stack_name(event["StackId"]) != cluster.get("Stack"):
        _refuse_unless_the_stack_is_new(event["StackId"])
    if event["RequestType"] == "Update":
        old, new = event["OldResourceProperties"]["Values"], event["ResourceProperties"]["Values"]
        changes = refused_changes(old, _with_clusters(old, new, event["StackId"]))
        if changes := changes or _taken_names(event) or _forgotten(event):
            _refuse_unless_it_rolls_back(event["StackId"], changes)
    if event["RequestType"] == "Create" and (taken := _taken_names(event)):
        raise RuntimeError(refusal(taken))
    return {"PhysicalResourceId": PHYSICAL_ID}


def _with_clusters(old: Values, new: Values, stack_id: str) -> Values:
    """Return the new values, of which some may change if no cluster exists. AWS is asked only for these."""
    some = {
        name: {**each, "may": "changes"}
        for name, each in new.items()
        if each["may"] == WITHOUT_CLUSTERS and name in old and old[name]["value"] != each["value"]
    }
    return new if some and parent_stack.has_clusters(stack_id) else {**new, **some}


def _refuse_unless_the_stack_is_new(stack_id: str) -> None:
    name = parent_stack.stack_name(stack_id)
    try:
        if not parent_stack.existed_before(stack_id):
            return
    except parent_stack.StatusUnknownError as error:
        raise RuntimeError(
            f"Nothing was changed. Whether {name} is new could not be read ({error}). The guard's role "
            "needs cloudformation:DescribeStacks; type the deploy again"
        ) from None
    raise RuntimeError(
        f"Nothing was deleted. A stack {name} existed before this deploy, without a guard. If it belongs to "
        "another app, deploy in another region or account: export AWS_REGION=... If it remains from a first "
        "deploy of Training Cluster with --no-rollback, type: aws cloudformation "
        f"update-termination-protection --no-enable-termination-protection --stack-name {name}, then: "
        f"aws cloudformation delete-stack --stack-name {name}, and deploy again"
    )


def _taken_names(event: dict[str, Any]) -> list[str]:
    """Explain the names of somebody else that a cluster needs, if it is another than the last deploy's."""
    cluster = event["ResourceProperties"].get("Cluster")
    last = event.get("OldResourceProperties", {}).get("Cluster") or {}
    if not cluster or cluster == last:
        return []
    if parent_stack.stack_name(event["StackId"]) == last.get("Stack") and cluster["Name"] != last["Name"]:
        return [names.kept(last["Stack"], last["Name"])]  # its description may be the new one already
    clients = boto3.client("cloudformation"), boto3.client("ec2")
    try:
        return parent_stack.ask(lambda: names.taken(cluster, *clients))
    except parent_stack.StatusUnknownError as error:
        return [f"Whether the names of {cluster['Name']} are free could not be read ({error}). Deploy again"]


def _forgotten(event: dict[str, Any]) -> list[str]:
    properties = event["ResourceProperties"]
    if "LeftOut" not in properties:
        return []
    stack = properties["Cluster"]["Stack"]
    try:
        if parent_stack.stack_name(event["StackId"]) == stack:
            last = event["OldResourceProperties"].get("Flags", {})
        else:
            last = parent_stack.recorded_flags(stack)
    except parent_stack.StatusUnknownError as error:
        return [f"The flags of the last deploy of {stack} could not be read ({error}): type the deploy again"]
    return forgotten_flags(stack, properties["Cluster"]["Name"], last, properties["LeftOut"])


def _refuse_unless_it_rolls_back(stack_id: str, changes: list[str]) -> None:
    try:
        if parent_stack.rolls_back(stack_id):
            print(f"allowed, since the stack rolls back: {changes}")
            return
    except parent_stack.StatusUnknownError as error:
        # A refusal is visible, loses nothing, and one command continues from there. Without it, an update
        # would silently put an empty resource in place of the data.
        changes = [
            *changes,
            f"Whether this is a rollback could not be read ({error}). If it is: "
            f"aws cloudformation continue-update-rollback --stack-name {parent_stack.stack_name(stack_id)}",
        ]
    raise RuntimeError(refusal(changes))
