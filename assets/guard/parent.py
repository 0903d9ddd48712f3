"""The CloudFormation stack that the guard is part of: whether it rolls back."""

from __future__ import annotations

import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError

_PAUSES_S = (1, 2, 4, 8, 16, 32, 64)
"""About two minutes of the function's five: a throttled call is no reason to refuse a rollback."""


class StatusUnknownError(Exception):
    """CloudFormation did not say it."""


def rolls_back(stack_id: str) -> bool:
    """Whether the stack undoes an update. Raises StatusUnknownError, after two minutes."""
    client = boto3.client("cloudformation")
    for pause_s in (*_PAUSES_S, None):
        try:
            stack = client.describe_stacks(StackName=stack_id)["Stacks"][0]
            # Not the _COMPLETE of an earlier one, from which the next update begins.
            return str(stack["StackStatus"]) == "UPDATE_ROLLBACK_IN_PROGRESS"
        except (BotoCoreError, ClientError) as error:
            if pause_s is None:
                raise StatusUnknownError(str(error)) from error
            print(f"asking again in {pause_s} s: {error}")
            time.sleep(pause_s)
    raise AssertionError("unreachable")
