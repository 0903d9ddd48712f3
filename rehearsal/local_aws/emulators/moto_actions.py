"""Actions that moto lacks, added to its own dispatchers, which parse requests and write answers."""

from collections.abc import Callable
from typing import Any

from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.moto_types import ec2

Action = Callable[[Any], Any]


def add(service: str, *actions: Action) -> None:
    """Add or replace actions; a function's name is the action's name in snake case."""
    from moto.ec2.responses import EC2Response  # noqa: PLC0415
    from moto.fsx.responses import FSxResponse  # noqa: PLC0415
    from moto.servicequotas.responses import ServiceQuotasResponse  # noqa: PLC0415

    dispatcher = {"ec2": EC2Response, "fsx": FSxResponse, "servicequotas": ServiceQuotasResponse}[service]
    for action in actions:
        setattr(dispatcher, action.__name__, action)


def answer(**result: Any) -> Any:
    """Make the answer of an EC2 action, with the names of botocore's model."""
    from moto.core.responses import ActionResult  # noqa: PLC0415

    return ActionResult(result)


def error(code: str, message: str) -> Exception:
    """Make an error of EC2."""
    from moto.ec2.exceptions import EC2ClientError  # noqa: PLC0415

    return EC2ClientError(code, message)


def json_error(code: str, message: str) -> Exception:
    """Make an error of a service that answers in JSON, such as FSx and Service Quotas."""
    from moto.core.exceptions import JsonRESTError  # noqa: PLC0415

    return JsonRESTError(code, message)


def parameter(request: Any, name: str, default: Any = None) -> Any:
    """Return one parameter of an EC2 request."""
    return hooks.find("EC2_PARAMETER")(request, name, default)


def filters(request: Any) -> dict[str, list[str]]:
    """Return the filters of an EC2 request, values by name."""
    return {each["Name"]: each.get("Values", []) for each in parameter(request, "Filters", [])}


def make_taggable(resource_type: str, prefix: str) -> None:
    """Let CreateTags accept ids with a prefix."""
    from moto.ec2.utils import EC2_PREFIX_TO_RESOURCE, EC2_RESOURCE_TO_PREFIX  # noqa: PLC0415

    EC2_RESOURCE_TO_PREFIX[resource_type] = prefix
    EC2_PREFIX_TO_RESOURCE[prefix] = resource_type


def given_tags(request: Any) -> dict[str, str]:
    """Return the tags that an EC2 request gives to the resources that it creates."""
    return {
        tag["Key"]: tag.get("Value", "")
        for specification in parameter(request, "TagSpecifications", [])
        for tag in specification.get("Tags", [])
    }


def listed_tags(resource_id: str, own: dict[str, str]) -> list[dict[str, str]]:
    """List a resource's tags: the tags of its creation, and tags that CreateTags added."""
    later = {tag["key"]: tag["value"] for tag in ec2().describe_tags({"resource-id": [resource_id]})}
    return [{"Key": key, "Value": value} for key, value in (own | later).items()]
