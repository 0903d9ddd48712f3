"""Image Builder's API, as far as a person's commands need it: run a pipeline, and show its results."""

import json
import uuid
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.image_builder.builds import BuildRequest
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
            raise RefusedError(f"The local AWS has no {path}", "InvalidRequestException")
        return 200, json.dumps({"requestId": str(uuid.uuid4()), **action(request)}).encode()
    except RefusedError as error:
        return 400, json.dumps({"__type": error.code, "message": str(error)}).encode()


def _start_pipeline(request: Request) -> Answer:
    image = run_pipeline(find(request["imagePipelineArn"], "image-pipeline"))
    return {"clientToken": request["clientToken"], "imageBuildVersionArn": image.arn}


def _get_image(request: Request) -> Answer:
    image = find(request["imageBuildVersionArn"], "image")
    recipe = RECORDS[image.details["recipe"]]
    described = {
        "arn": recipe.arn,
        "name": recipe.name,
        "version": ".".join(str(part) for part in recipe.numbers),
        "parentImage": recipe.properties["ParentImage"],
    }
    return {"image": _summary(image) | {"imageRecipe": described}}


def _list_images(_request: Request) -> Answer:
    """Return one entry per version, of its latest build."""
    latest = {image.arn.rpartition("/")[0]: image for image in _images()}
    versions = [{**_summary(image), "arn": arn} for arn, image in latest.items()]
    return {"imageVersionList": versions}


def _list_builds(request: Request) -> Answer:
    version = request["imageVersionArn"]
    builds = [_summary(image) for image in _images() if image.arn.rpartition("/")[0] == version]
    return {"imageSummaryList": builds}


def _list_recipes(_request: Request) -> Answer:
    recipes = [_named(each) for each in RECORDS.values() if each.kind == "image-recipe"]
    return {"imageRecipeSummaryList": recipes}


def _list_components(_request: Request) -> Answer:
    """Return one entry per version."""
    found = {each.arn.rpartition("/")[0]: each for each in RECORDS.values() if each.kind == "component"}
    return {"componentVersionList": [{**_named(each), "arn": arn} for arn, each in found.items()]}


def _list_component_builds(request: Request) -> Answer:
    version = request["componentVersionArn"]
    builds = [each for each in RECORDS.values() if each.arn.rpartition("/")[0] == version]
    return {"componentSummaryList": [_named(each) for each in builds]}


def _named(record: Record) -> Answer:
    return {
        "arn": record.arn,
        "name": record.name,
        "platform": "Linux",
        "dateCreated": record.created,
        "tags": record.properties.get("Tags", {}),
    }


def _list_pipeline_images(request: Request) -> Answer:
    pipeline = find(request["imagePipelineArn"], "image-pipeline")
    images = [image for image in _images() if _order(image).pipeline_arn == pipeline.arn]
    return {"imageSummaryList": [_summary(image) for image in images]}


def _get_pipeline(request: Request) -> Answer:
    return {"imagePipeline": _pipeline(find(request["imagePipelineArn"], "image-pipeline"))}


def _list_pipelines(_request: Request) -> Answer:
    found = [_pipeline(each) for each in RECORDS.values() if each.kind == "image-pipeline"]
    return {"imagePipelineList": found}


def _pipeline(record: Record) -> Answer:
    properties = record.properties
    return {
        "arn": record.arn,
        "name": record.name,
        "status": properties.get("Status", "ENABLED"),
        "imageRecipeArn": properties["ImageRecipeArn"],
        "infrastructureConfigurationArn": properties["InfrastructureConfigurationArn"],
        "distributionConfigurationArn": properties.get("DistributionConfigurationArn"),
        "dateCreated": record.created,
    }


def _images() -> list[Record]:
    return [each for each in RECORDS.values() if each.kind == "image"]


def _order(image: Record) -> BuildRequest:
    order: BuildRequest = image.details["order"]
    return order


def _summary(image: Record) -> Answer:
    details = image.details
    ami = {
        "region": REGION,
        "image": details.get("ami"),
        "name": details.get("ami_name"),
        "accountId": ACCOUNT,
        "state": details["state"],
    }
    return {
        "arn": image.arn,
        "name": image.name,
        "type": "AMI",
        "version": "/".join([".".join(str(part) for part in image.numbers[:3]), str(image.numbers[3])]),
        "platform": "Linux",
        "state": details["state"],
        "dateCreated": image.created,
        "outputResources": {"amis": [ami] if "ami" in details else []},
        "tags": _order(image).tags,
        "buildType": "USER_INITIATED",
    }


_ACTIONS: dict[str, Callable[[Request], Answer]] = {
    "StartImagePipelineExecution": _start_pipeline,
    "GetImage": _get_image,
    "ListImages": _list_images,
    "ListImageBuildVersions": _list_builds,
    "ListImageRecipes": _list_recipes,
    "ListComponents": _list_components,
    "ListComponentBuildVersions": _list_component_builds,
    "ListImagePipelineImages": _list_pipeline_images,
    "GetImagePipeline": _get_pipeline,
    "ListImagePipelines": _list_pipelines,
}
