"""The CloudFormation stack that the guard is part of: its name, its status and the clusters that use it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_PAUSES_S = (1, 2, 4, 8, 16, 32, 64)
"""Pauses of about two minutes, of the function's five: neither a throttled call nor a new role, whose
permissions are not yet effective everywhere, is a reason to refuse.
"""


_Answer = TypeVar("_Answer")
_EXPORT, _CLUSTERS = "NodeSecurityGroupId", "TrainingClusterStack"
"""Export of NetworkStack that every cluster imports, and the beginning of the names of their stacks."""


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
    try:
        names = [
            name
            for page in pages.paginate(ExportName=f"{stack_name(stack_id)}:{_EXPORT}")
            for name in page["Imports"]
        ]
    except (BotoCoreError, ClientError) as error:
        return "is not imported by any stack" not in str(error)
    return any(name.startswith(_CLUSTERS) for name in names)


def _status(stack_id: str) -> str:
    client = boto3.client("cloudformation")
    return ask(lambda: str(client.describe_stacks(StackName=stack_id)["Stacks"][0]["StackStatus"]))


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
