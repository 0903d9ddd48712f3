"""Lambda entry of Custom::ClusterImage: the official parent of our images, or an image of one's own, checked.

Called by CDK's Provider framework. The physical id begins with the image's id; attributes are ImageId, Name,
RootGib and Note, which is empty or what a person should know. Nothing is made in AWS, so a Delete has nothing
to do.
"""

from __future__ import annotations

import re
from typing import Any

import official
import own
from botocore.exceptions import BotoCoreError, ClientError
from region import Region, rolls_back
from wish import OFFICIAL, RefusedError, Wish

Answer = dict[str, Any]


def on_event(event: dict[str, Any], _context: object) -> Answer:
    """Answer one event of CloudFormation.

    Raises:
        RuntimeError: no image will do, or AWS gave no answer; nothing was changed.
    """
    print(f"{event['RequestType']} of the image: {event['ResourceProperties']}")
    if event["RequestType"] == "Delete":
        return {"PhysicalResourceId": event["PhysicalResourceId"]}
    try:
        return _answer(event)
    except RefusedError as error:
        raise RuntimeError(str(error)) from None
    except (BotoCoreError, ClientError) as error:
        stack = event["StackId"].rpartition(":stack/")[2].partition("/")[0]
        message = (
            f"The image was not looked at: {error}. Nothing was changed; type the deploy again, or, if the "
            "stack is UPDATE_ROLLBACK_FAILED: aws cloudformation continue-update-rollback "
            f"--stack-name {stack}"
        )
        raise RuntimeError(message) from None


def _answer(event: dict[str, Any]) -> Answer:
    wish = _wish(event["ResourceProperties"])
    try:
        answer = _found(event, wish)
    except (RefusedError, BotoCoreError, ClientError) as error:
        if event["RequestType"] == "Create" or not rolls_back(event["StackId"]):
            raise
        print(f"the stack rolls back, and takes what it had: {error}")  # the way back is always open
        answer = _as_it_was(event, wish)
    print(f"the image is {answer['Data']}")
    return answer


def _wish(properties: dict[str, str]) -> Wish:
    return Wish(
        wanted=properties["Wanted"],
        version=properties["PclusterVersion"],
        os=properties["Os"],
        architecture=properties["Architecture"],
        root_gib=int(properties["RootGib"]),
    )


def _found(event: dict[str, Any], wish: Wish) -> Answer:
    region, known = Region(), _known(event)
    if wish.wanted == OFFICIAL:
        image, note = official.choose(wish, region, known)
    else:
        image, note = own.check(wish, region)
    physical_id = image.id
    if known and image.id == known[0]:
        physical_id = event["PhysicalResourceId"]
    elif known and image.id not in known:
        # So that a rollback takes the former again, though a newer one may be there.
        physical_id = f"{image.id} after {known[0]}"
    return _answered(physical_id, image.id, name=image.name, root_gib=image.root_gib, note=note)


def _as_it_was(event: dict[str, Any], wish: Wish) -> Answer:
    """An answer that asks AWS nothing: the image by its id, or the one before this update's."""
    known, former = _known(event), _wish(event["OldResourceProperties"])
    same = former.wanted == wish.wanted and former.official_name == wish.official_name
    image_id = wish.wanted if wish.wanted != OFFICIAL else known[0 if same else -1]
    note = f"{image_id} was not looked at: the stack rolled back"
    return _answered(image_id, image_id, name=image_id, root_gib=wish.root_gib, note=note)


def _known(event: dict[str, Any]) -> list[str]:
    """Ids of the image in use and of the one before it; none at a Create."""
    return re.findall(r"ami-[0-9a-f]+", event.get("PhysicalResourceId", ""))


def _answered(physical_id: str, image_id: str, *, name: str, root_gib: int | None, note: str) -> Answer:
    return {
        "PhysicalResourceId": physical_id,
        "Data": {"ImageId": image_id, "Name": name, "RootGib": str(root_gib), "Note": note},
    }
