"""Lambda entry of the custom resource: the network's zone, chosen once and never changed.

Called by CDK's Provider framework. The physical id is the zone's id; attributes are Id and Name. Nothing is
made in AWS, so a Delete has nothing to do.
"""

from __future__ import annotations

from typing import Any

import choice
from botocore.exceptions import BotoCoreError, ClientError
from region import Region, Zone, rolls_back


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Answer one event of CloudFormation.

    Raises:
        RuntimeError: no zone will do, or AWS gave no answer; nothing was changed.
    """
    print(f"{event['RequestType']} of the network's zone: {event['ResourceProperties']}")
    if event["RequestType"] == "Delete":
        return {"PhysicalResourceId": event["PhysicalResourceId"]}
    try:
        zone = _zone(event)
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
    print(f"the zone is {zone}")
    return {"PhysicalResourceId": zone.id, "Data": {"Id": zone.id, "Name": zone.name}}


def _zone(event: dict[str, Any]) -> Zone:
    region, properties = Region(), event["ResourceProperties"]
    wish = choice.Wish(
        zone=properties["Zone"],
        instance_types=tuple(properties["InstanceTypes"]),
        reservation_id=properties["ReservationId"],
    )
    if event["RequestType"] == "Create":
        return choice.choose(wish, region)
    kept = choice.find(event["PhysicalResourceId"], region)
    if kept is None:
        raise choice.RefusedError(
            f"{region.name} no longer has the network's zone {event['PhysicalResourceId']}."
        )
    if rolls_back(event["StackId"]):  # the way back is always open
        return kept
    return choice.keep(kept, wish, region)
