"""Questions to CloudFormation about the guard's stack and clusters: status, flags, imports."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any, TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_PAUSES_S = (1, 2, 4, 8, 16, 32, 64)
"""Pauses of about two minutes, of the function's five: neither a throttled call nor a new role, whose
permissions are not yet effective everywhere, is a reason to refuse.
"""


_Answer = TypeVar("_Answer")
_EXPORT, _CLUSTERS = "NodeSecurityGroupId", "TrainingClusterStack"
"""Export of NetworkStack that every cluster imports, and the beginning of the names of their stacks."""
_FLAGS = "training-cluster:flags"
"""Key of a template's metadata (constructs/training_cluster/flags/given.py)."""


class StatusUnknownError(Exception):
    """AWS did not answer."""


def stack_name(stack_id: str) -> str:
    """Return the stack's name from its ARN."""
    return stack_id.rpartition(":stack/")[2].partition("/")[0]


def existed_before(stack_id: str) -> bool:
    """Return True if the current deploy updates the stack. Raises StatusUnknownError."""
    return _status(stack_id) == "UPDATE_IN_PROGRESS"


def rolls_back(stack_id: str) -> bool:
    """Return True if the stack rolls back an update. Raises StatusUnknownError."""
    # UPDATE_ROLLBACK_COMPLETE is the end of an earlier rollback, from which the next update begins.
    return _status(stack_id) == "UPDATE_ROLLBACK_IN_PROGRESS"


def has_clusters(stack_id: str) -> bool:
    """Return True if a cluster imports from the stack, or if CloudFormation does not tell."""
    pages = boto3.client("cloudformation").get_paginator("list_imports")

    def names() -> list[str]:
        try:
            asked = pages.paginate(ExportName=f"{stack_name(stack_id)}:{_EXPORT}")
            return [name for page in asked for name in page["Imports"]]
        except ClientError as error:
            if "is not imported by any stack" in str(error):
                return []
            raise

    try:
        return any(name.startswith(_CLUSTERS) for name in ask(names))
    except StatusUnknownError:
        return True


def recorded_flags(stack: str) -> dict[str, Any]:
    """Return the flags of the last deploy of a cluster; empty without one. Raises StatusUnknownError."""
    if not _status(stack).startswith(("CREATE_COMPLETE", "UPDATE_")):  # the first deploy did not succeed
        return {}
    client = boto3.client("cloudformation")
    body = ask(lambda: client.get_template(StackName=stack)["TemplateBody"])
    template = json.loads(body) if isinstance(body, str) else body
    flags: dict[str, Any] = template.get("Metadata", {}).get(_FLAGS, {})
    return flags


def find_stack(name: str, client: Any) -> dict[str, Any] | None:
    """Describe a stack, by CloudFormation's client; None without one. Raises botocore's errors."""
    try:
        return dict(client.describe_stacks(StackName=name)["Stacks"][0])
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise


def _status(stack: str) -> str:
    client = boto3.client("cloudformation")
    return ask(lambda: str((find_stack(stack, client) or {}).get("StackStatus", "")))


def ask(call: Callable[[], _Answer]) -> _Answer:
    """Return the answer of a call to AWS. Raises StatusUnknownError, after two minutes."""
    for pause_s in (*_PAUSES_S, None):
        try:
            return call()
        except (BotoCoreError, ClientError) as error:
            if pause_s is None:
                raise StatusUnknownError(str(error)) from error
            print(f"asking again in {pause_s} s: {error}")
            time.sleep(pause_s)
    raise AssertionError("unreachable")
