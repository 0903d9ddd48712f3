"""Lambda entry of the custom resource: the network's zone and a second one, chosen once and never changed.

Called by CDK's Provider framework. The physical id is the zone's id; attributes are its Id and Name, and
OtherName, the other zone's name. It creates nothing in AWS, so a Delete has nothing to do.
"""

from __future__ import annotations

from typing import Any

import choice
from botocore.exceptions import BotoCoreError, ClientError
from region import Region, Zone, describe_stack

OTHER_ZONE_OUTPUT = "OtherZoneName"
"""Output of NetworkStack (stacks/network_stack.py) from which an update reads the second zone."""


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one event of CloudFormation.

    Raises:
        RuntimeError: no zone is possible, or AWS gave no answer; nothing was changed.
    """
    print(f"{event['RequestType']} of the network's zone: {event['ResourceProperties']}")
    if event["RequestType"] == "Delete":
        return {"PhysicalResourceId": event["PhysicalResourceId"]}
    try:
        zone, other_name = _zones(event)
    except choice.RefusedError as error:
        raise RuntimeError(str(error)) from None
    except (BotoCoreError, ClientError) as error:
        stack = event["StackId"].rpartition(":stack/")[2].partition("/")[0]
        message = (
            f"The network's zone was not decided: {error}. Nothing was changed; type the deploy again, or, "
            "if the stack is UPDATE_ROLLBACK_FAILED: aws cloudformation continue-update-rollback "
            f"--stack-name {stack}"
        )
        raise RuntimeError(message) from None
    print(f"the zone is {zone}, the other one {other_name}")
    data = {"Id": zone.id, "Name": zone.name, "OtherName": other_name}
    return {"PhysicalResourceId": zone.id, "Data": data}


def _zones(event: dict[str, Any]) -> tuple[Zone, str]:
    """Choose or keep the network's zone, and the name of the second one."""
    region, request = Region(), choice.read_request(event["ResourceProperties"])
    if event["RequestType"] == "Create":
        chosen = choice.choose(request, region)
        return chosen, choice.beside(chosen, region).name
    kept = choice.find(event["PhysicalResourceId"], region)
    if kept is None:
        raise choice.RefusedError(
            f"{region.name} no longer has the network's zone {event['PhysicalResourceId']}."
        )
    rolls_back, outputs = describe_stack(event["StackId"])
    if not rolls_back:  # a rollback always passes
        choice.keep(kept, request, region)
    return kept, outputs.get(OTHER_ZONE_OUTPUT) or choice.beside(kept, region).name
