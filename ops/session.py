"""How the account is asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import boto3
from botocore.exceptions import ClientError

ClientOf = Callable[[str], Any]
"""boto3's client of a service, by the service's name; the same one each time."""


def account_clients() -> ClientOf:
    """Clients of the account and region that the CDK CLI would take.

    boto3 by itself does not read AWS_REGION, which the CDK and AWS's own CLI prefer.
    """
    session = boto3.Session(region_name=os.environ.get("AWS_REGION") or None)
    return cache(session.client)


def unless(call: Callable[[], Any], *codes: str) -> Any | None:
    """What AWS answers, None for an error of one of these codes. Raises other errors."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in codes:
            return None
        raise
