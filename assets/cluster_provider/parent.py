"""The CloudFormation stack that the custom resource is part of."""

from __future__ import annotations

import boto3
from answers import TransientError, passes
from botocore.exceptions import BotoCoreError, ClientError


def rolls_back(stack_id: str) -> bool:
    """Whether the stack undoes an update; False when we may not ask. Raises TransientError."""
    return _status(stack_id).startswith("UPDATE_ROLLBACK")


def cleans_up(stack_id: str) -> bool:
    """Whether the stack removes what an update replaced; False when we may not ask. Raises TransientError."""
    return _status(stack_id) == "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"


def _status(stack_id: str) -> str:
    try:
        stack = boto3.client("cloudformation").describe_stacks(StackName=stack_id)["Stacks"][0]
    except BotoCoreError as error:
        raise TransientError(f"{stack_id}: {error}") from error
    except ClientError as error:
        if passes(error.response["Error"]["Code"]):
            raise TransientError(f"{stack_id}: {error}") from error
        print(f"{stack_id}: its status is unknown: {error}")
        return ""
    return str(stack["StackStatus"])
