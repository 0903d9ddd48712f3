"""Lambda entry of Custom::ClusterImage: the official parent of built images, or the user's image, checked.

Called by CDK's Provider framework. The physical id begins with the image's id; attributes are ImageId, Name,
RootGib and Note, which is empty or a note for people. It creates nothing in AWS, so a Delete has nothing to
do.
"""

from __future__ import annotations

import re
from typing import Any

import custom_ami
import official
from botocore.exceptions import BotoCoreError, ClientError
from region import Region, rolls_back
from request import OFFICIAL, ImageRequest, RefusedError

Answer = dict[str, Any]


def on_event(event: dict[str, Any], _context: object) -> Answer:
    """Answer one event of CloudFormation.

    Raises:
        RuntimeError: no image fits, or AWS gave no answer; nothing was changed.
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
            f"The image was not checked: {error}. Nothing was changed; type the deploy again, or, if the "
            "stack is UPDATE_ROLLBACK_FAILED: aws cloudformation continue-update-rollback "
            f"--stack-name {stack}"
        )
        raise RuntimeError(message) from None


def _answer(event: dict[str, Any]) -> Answer:
    request = _request(event["ResourceProperties"])
    try:
        answer = _found(event, request)
    except (RefusedError, BotoCoreError, ClientError) as error:
        if event["RequestType"] == "Create" or not rolls_back(event["StackId"]):
            raise
        print(f"the stack rolls back, and gets its former image: {error}")  # a rollback always passes
        answer = _former_answer(event, request)
    print(f"the image is {answer['Data']}")
    return answer


def _request(properties: dict[str, str]) -> ImageRequest:
    return ImageRequest(
        wanted=properties["Wanted"],
        version=properties["PclusterVersion"],
        os_name=properties["Os"],
        architecture=properties["Architecture"],
        root_gib=int(properties["RootGib"]),
    )


def _found(event: dict[str, Any], request: ImageRequest) -> Answer:
    region, known = Region(), _known(event)
    if request.wanted == OFFICIAL:
        image, note = official.choose(request, region, known)
    else:
        image, note = custom_ami.check(request, region)
    physical_id = image.id
    if known and image.id == known[0]:
        physical_id = event["PhysicalResourceId"]
    elif known and image.id not in known:
        # A rollback restores the former image from this id, even if a newer one exists.
        physical_id = f"{image.id} after {known[0]}"
    return _answered(physical_id, image.id, name=image.name, root_gib=image.root_gib, note=note)


def _former_answer(event: dict[str, Any], request: ImageRequest) -> Answer:
    """Return an answer without a call of AWS: the requested image, or the one before this update."""
    known, former = _known(event), _request(event["OldResourceProperties"])
    same = former.wanted == request.wanted and former.official_name == request.official_name
    image_id = request.wanted if request.wanted != OFFICIAL else known[0 if same else -1]
    note = f"{image_id} was not checked: the stack rolled back"
    return _answered(image_id, image_id, name=image_id, root_gib=request.root_gib, note=note)


def _known(event: dict[str, Any]) -> list[str]:
    """Return the ids of the image in use and of the one before it; none at a Create."""
    return re.findall(r"ami-[0-9a-f]+", event.get("PhysicalResourceId", ""))


def _answered(physical_id: str, image_id: str, *, name: str, root_gib: int | None, note: str) -> Answer:
    return {
        "PhysicalResourceId": physical_id,
        "Data": {"ImageId": image_id, "Name": name, "RootGib": str(root_gib), "Note": note},
    }
