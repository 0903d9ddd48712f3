"""Lambda entry of Custom::Guard: fails an update that would replace what holds data, before anything happens.

What holds data depends on this custom resource, so CloudFormation asks here first. Nothing is made, kept or
deleted: the old and the new values come with the event. A guard that is created in a stack that existed
before is in somebody else's: `cdk deploy` updates whatever stack has the name.
"""

from __future__ import annotations

from typing import Any

import parent
from transitions import refusal, refused_changes

PHYSICAL_ID = "guard"
"""Constant: another one would be a replacement, and CloudFormation would send a Delete for this one."""


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Let everything pass but an update that changes what must stay, and the takeover of another stack.

    A rollback is an update with old and new swapped, and always passes: there is nothing that it could harm,
    and a stack whose rollback fails is stuck.

    Raises:
        RuntimeError: it is refused; nothing was changed. The text is for the person who typed the deploy.
    """
    if event["RequestType"] == "Create":
        _refuse_unless_the_stack_is_new(event["StackId"])
    if event["RequestType"] == "Update":
        old, new = event["OldResourceProperties"]["Values"], event["ResourceProperties"]["Values"]
        if changes := refused_changes(old, new):
            _refuse_unless_it_rolls_back(event["StackId"], changes)
    return {"PhysicalResourceId": PHYSICAL_ID}


def _refuse_unless_the_stack_is_new(stack_id: str) -> None:
    name = parent.stack_name(stack_id)
    try:
        if not parent.existed_before(stack_id):
            return
    except parent.StatusUnknownError as error:
        raise RuntimeError(
            f"Nothing was changed. It could not be read whether {name} is new ({error}). The guard's role "
            "needs cloudformation:DescribeStacks; type the deploy again"
        ) from None
    raise RuntimeError(
        f"Nothing was deleted. A stack {name} existed before this deploy, without a guard. If it is another "
        "app's, deploy in another region or account: export AWS_REGION=... If it is what is left of a first "
        "deploy of Training Cluster with --no-rollback, type: aws cloudformation "
        f"update-termination-protection --no-enable-termination-protection --stack-name {name}, then: "
        f"aws cloudformation delete-stack --stack-name {name}, and deploy again"
    )


def _refuse_unless_it_rolls_back(stack_id: str, changes: list[str]) -> None:
    try:
        if parent.rolls_back(stack_id):
            print(f"let pass, since the stack rolls back: {changes}")
            return
    except parent.StatusUnknownError as error:
        # To refuse is loud, loses nothing, and one command goes on from there. To let pass would, in an
        # update, put something empty in the place of the data, and say nothing.
        changes = [
            *changes,
            f"It could not be read whether this is a rollback ({error}). If it is: "
            f"aws cloudformation continue-update-rollback --stack-name {parent.stack_name(stack_id)}",
        ]
    raise RuntimeError(refusal(changes))
