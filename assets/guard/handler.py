"""Lambda entry of Custom::Guard: fails an update that would replace what holds data, before anything happens.

What holds data depends on this custom resource, so CloudFormation asks here first. Nothing is made, kept or
deleted: the old and the new values come with the event.
"""

from __future__ import annotations

from typing import Any

import parent
from transitions import refusal, refused_changes

PHYSICAL_ID = "guard"
"""Constant: another one would be a replacement, and CloudFormation would send a Delete for this one."""


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Let everything pass but an update that changes what must stay.

    A rollback is an update with old and new swapped, and always passes: there is nothing that it could harm,
    and a stack whose rollback fails is stuck.

    Raises:
        RuntimeError: it is refused; nothing was changed. The text is for the person who typed the deploy.
    """
    if event["RequestType"] == "Update":
        old, new = event["OldResourceProperties"]["Values"], event["ResourceProperties"]["Values"]
        if changes := refused_changes(old, new):
            _refuse_unless_it_rolls_back(event["StackId"], changes)
    return {"PhysicalResourceId": PHYSICAL_ID}


def _refuse_unless_it_rolls_back(stack_id: str, changes: list[str]) -> None:
    try:
        if parent.rolls_back(stack_id):
            print(f"let pass, since the stack rolls back: {changes}")
            return
    except parent.StatusUnknownError as error:
        # To refuse is loud, loses nothing, and one command goes on from there. To let pass would, in an
        # update, put something empty in the place of the data, and say nothing.
        name = stack_id.rpartition(":stack/")[2].partition("/")[0]
        changes = [
            *changes,
            f"It could not be read whether this is a rollback ({error}). If it is: "
            f"aws cloudformation continue-update-rollback --stack-name {name}",
        ]
    raise RuntimeError(refusal(changes))
