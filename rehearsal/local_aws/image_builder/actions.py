"""Image Builder's API, as far as the app's commands need it: run a pipeline, and list what exists."""

import json
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from rehearsal.local_aws.image_builder.records import RECORDS, Record, RefusedError, find
from rehearsal.local_aws.image_builder.resources import run_pipeline

SERVICE = "imagebuilder"
"""Name of the service in signatures of requests."""
HEADERS = [("content-type", "application/json")]

Request = dict[str, Any]
Answer = dict[str, Any]


def answer(path: str, query: bytes, body: bytes) -> tuple[int, bytes]:
    """Answer one request; return status and body."""
    action = _ACTIONS.get(path.strip("/"))
    request = {key: values[0] for key, values in parse_qs(query.decode()).items()}
    request |= json.loads(body or b"{}")
    try:
        if action is None:
            raise RefusedError(f"The local AWS has no {path}")
        return 200, json.dumps({"requestId": str(uuid.uuid4()), **action(request)}).encode()
    except RefusedError as error:
        return 400, json.dumps({"__type": "InvalidRequestException", "message": str(error)}).encode()


def _start_pipeline(request: Request) -> Answer:
    image = run_pipeline(find(request["imagePipelineArn"], "image-pipeline"))
    return {"clientToken": request["clientToken"], "imageBuildVersionArn": image.arn}


def _versions(kind: str) -> list[Answer]:
    """Return one entry per version, of its latest build."""
    found = {each.arn.rpartition("/")[0]: each for each in RECORDS.values() if each.kind == kind}
    return [{**_summary(each), "arn": arn} for arn, each in found.items()]


def _builds(version: str) -> list[Answer]:
    return [_summary(each) for each in RECORDS.values() if each.arn.rpartition("/")[0] == version]


def _list_recipes(_request: Request) -> Answer:
    recipes = [_summary(each) for each in RECORDS.values() if each.kind == "image-recipe"]
    return {"imageRecipeSummaryList": recipes}


def _summary(record: Record) -> Answer:
    return {
        "arn": record.arn,
        "name": record.name,
        "platform": "Linux",
        "dateCreated": record.created,
        "tags": record.properties.get("Tags", {}),
        **({"state": record.details["state"]} if record.kind == "image" else {}),
    }


_ACTIONS: dict[str, Callable[[Request], Answer]] = {
    "StartImagePipelineExecution": _start_pipeline,
    "ListImages": lambda _: {"imageVersionList": _versions("image")},
    "ListImageBuildVersions": lambda request: {"imageSummaryList": _builds(request["imageVersionArn"])},
    "ListImageRecipes": _list_recipes,
    "ListComponents": lambda _: {"componentVersionList": _versions("component")},
    "ListComponentBuildVersions": lambda request: {
        "componentSummaryList": _builds(request["componentVersionArn"])
    },
}
