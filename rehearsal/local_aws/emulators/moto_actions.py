"""Actions that moto lacks, added to its own dispatchers, which parse requests and write answers."""

from collections.abc import Callable
from typing import Any

from rehearsal.local_aws.emulators import hooks, moto_hooks
from rehearsal.local_aws.emulators.hook import Hook
from rehearsal.local_aws.emulators.moto_types import ec2

Action = Callable[[Any], Any]


def add(dispatcher: Hook, *actions: Action) -> None:
    """Add or replace actions; a function's name is the action's name in snake case."""
    for action in actions:
        setattr(hooks.find(dispatcher), action.__name__, action)


def answer(**result: Any) -> Any:
    """Make the answer of an EC2 action, with the names of botocore's model."""
    return hooks.find(moto_hooks.ACTION_RESULT)(result)


def error(code: str, message: str) -> Exception:
    """Make an error of EC2."""
    found: Exception = hooks.find(moto_hooks.EC2_ERROR)(code, message)
    return found


def json_error(code: str, message: str) -> Exception:
    """Make an error of a service that answers in JSON, such as FSx and Service Quotas."""
    found: Exception = hooks.find(moto_hooks.JSON_ERROR)(code, message)
    return found


def parameter(request: Any, name: str, default: Any = None) -> Any:
    """Return one parameter of an EC2 request."""
    return hooks.find(moto_hooks.EC2_PARAMETER)(request, name, default)


def filters(request: Any) -> dict[str, list[str]]:
    """Return the filters of an EC2 request, values by name."""
    found: dict[str, list[str]] = hooks.find(moto_hooks.EC2_FILTERS)(request)
    return found


def make_taggable(resource_type: str, prefix: str) -> None:
    """Let CreateTags accept ids with a prefix."""
    hooks.find(moto_hooks.ID_PREFIXES)[resource_type] = prefix
    hooks.find(moto_hooks.ID_TYPES)[prefix] = resource_type


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
