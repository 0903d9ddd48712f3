"""The CloudFormation stack that the custom resource is part of."""

from __future__ import annotations

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from errors import TransientError, is_transient

_AWAITING = {
    "Create": {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"},
    "Update": {"UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"},
}


def rolls_back(stack_id: str) -> bool:
    """Return True while the stack rolls back; False if AWS denies the call. Raises TransientError."""
    return _status(stack_id).startswith("UPDATE_ROLLBACK")


def cleans_up(stack_id: str) -> bool:
    """Return True while an update's clean-up runs; False if AWS denies the call. Raises TransientError."""
    return _status(stack_id) == "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"


def awaits(kind: str, stack_id: str) -> bool:
    """Return True if the stack is in a state in which it awaits the answer to a Create or an Update.

    Raises:
        TransientError: CloudFormation did not answer.
    """
    return _status(stack_id) in _AWAITING[kind]


def _status(stack_id: str) -> str:
    try:
        stack = boto3.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"][0]
    except BotoCoreError as error:
        raise TransientError(f"{stack_id}: {error}") from error
    except ClientError as error:
        if is_transient(error.response["Error"]["Code"]):
            raise TransientError(f"{stack_id}: {error}") from error
        print(f"{stack_id}: its status is unknown: {error}")
        return ""
    return str(stack["StackStatus"])
