"""How the account is asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import JSONFileCache

ClientOf = Callable[[str], Any]
"""boto3's client of a service, by the service's name; the same one each time."""

# A person waits: without a network the answer comes in seconds, not after a minute for each of five tries.
_PATIENCE = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard", "max_attempts": 3})


# Regions of this partition alone can be off in an account; this one never is.
_PARTITION, _ALWAYS_ON = "aws", "us-east-1"


def account_session(region: str | None = None) -> boto3.Session:
    """Open a session of the account and region that the CDK CLI would take, or of another region.

    boto3 by itself does not read AWS_REGION, which the CDK and AWS's own CLI prefer. trainctl's --region and
    --profile stand in the environment by now. Credentials of a role are kept where the AWS CLI keeps them, so
    that the code of an MFA device is asked for once in their life. Raises botocore's errors.
    """
    core = botocore.session.get_session()
    roles = core.get_component("credential_provider").get_provider("assume-role")
    roles.cache = JSONFileCache(str(Path.home() / ".aws" / "cli" / "cache"))
    return boto3.Session(botocore_session=core, region_name=region or os.environ.get("AWS_REGION") or None)


def account_clients(region: str | None = None) -> ClientOf:
    """Make clients of the session of this region, each service's once."""
    session = account_session(region)
    return cache(lambda service: session.client(service, config=_PATIENCE))


def unless(call: Callable[[], Any], *codes: str) -> Any | None:
    """What AWS answers, None for an error of one of these codes. Raises other errors."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in codes:
            return None
        raise


def region_turned_off() -> str | None:
    """Name the session's region if it refuses credentials that another region takes; None otherwise.

    A region that is not enabled in the account knows none of its credentials, and says that they are wrong.
    """
    session = account_session()
    region = session.region_name
    try:
        if region in (None, _ALWAYS_ON) or session.get_partition_for_region(region) != _PARTITION:
            return None
        account_clients(_ALWAYS_ON)("sts").get_caller_identity()
    except (BotoCoreError, ClientError):
        return None
    return region
