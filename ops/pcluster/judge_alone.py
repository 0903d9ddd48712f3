"""Lets the validators of the ParallelCluster library that ask AWS nothing check one cluster config.

The others need ids that exist. Which are which is found by running them: what AWS would answer is unknown
here, and a validator that reads it or sends a request says nothing.

Called by: ops/pcluster/dry_run.py. The config comes in on stdin as JSON; the last line of stdout is the list
of messages.
"""

import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from unittest.mock import MagicMock, Mock

os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")

from botocore.client import BaseClient
from marshmallow import ValidationError
from pcluster.aws.aws_api import AWSApi
from pcluster.schemas.cluster_schema import ClusterSchema
from pcluster.validators.common import AsyncValidator, ValidatorContext


class _Asked(BaseException):
    """A request; the library handles each Exception itself."""


def _ask(*_: object, **__: object) -> None:
    raise _Asked


def judge(config: dict[str, Any]) -> list[dict[str, str]]:
    """Return the messages about a config, each once."""
    setattr(BaseClient, "_make_api_call", _ask)  # noqa: B010  # the stubs have no such name
    AWSApi.instance = MagicMock()
    try:
        found = list(_failures(ClusterSchema(cluster_name="any").load(config)))
    except ValidationError as error:
        return [{"level": "ERROR", "validator": "ConfigSchemaValidator", "text": str(error)}]
    said = dict.fromkeys((each.level.name, each.validator_type, each.message) for each in found)
    return [{"level": level, "validator": name, "text": text} for level, name, text in said]


def _failures(resource: Any) -> Iterator[Any]:
    for each in resource._nested_resources():
        yield from _failures(each)
    resource._validators.clear()
    with suppress(Exception, _Asked):
        resource._register_validators(ValidatorContext())
    # An error of a validator itself is left to the dry run of the deploy, which has real ids.
    for kind, given in resource._validators:
        AWSApi.instance.reset_mock()
        with suppress(Exception, _Asked):
            found = [] if issubclass(kind, AsyncValidator) or _is_unknown(given) else kind().execute(**given)
            yield from () if AWSApi.instance.called else found


def _is_unknown(value: Any) -> bool:
    inner = (*value, *value.values()) if isinstance(value, dict) else value
    return isinstance(value, Mock) or (
        isinstance(value, dict | list | tuple | set) and any(map(_is_unknown, inner))
    )


if __name__ == "__main__":
    print(json.dumps(judge(json.load(sys.stdin))), flush=True)
