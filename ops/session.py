"""How the account is asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

ClientOf = Callable[[str], Any]
"""boto3's client of a service, by the service's name; the same one each time."""

# A person waits: without a network the answer comes in seconds, not after a minute for each of five tries.
_PATIENCE = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard", "max_attempts": 3})


def account_clients(region: str | None = None) -> ClientOf:
    """Clients of the account and region that the CDK CLI would take, or of another region.

    boto3 by itself does not read AWS_REGION, which the CDK and AWS's own CLI prefer. trainctl's --region and
    --profile stand in the environment by now.
    """
    session = boto3.Session(region_name=region or os.environ.get("AWS_REGION") or None)
    return cache(lambda service: session.client(service, config=_PATIENCE))


def unless(call: Callable[[], Any], *codes: str) -> Any | None:
    """What AWS answers, None for an error of one of these codes. Raises other errors."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in codes:
            return None
        raise
