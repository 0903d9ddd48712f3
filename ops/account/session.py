"""Sessions and clients of boto3 for the user's account."""

import contextlib
import ipaddress
import os
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.utils import JSONFileCache

ClientOf = Callable[[str], Any]
"""Function that returns boto3's client of a service by its name, always the same one."""

# A user waits: without a network the error comes in seconds, not after a minute for each of five attempts.
_PATIENCE = Config(connect_timeout=5, read_timeout=30, retries={"mode": "standard", "max_attempts": 3})


# Only this partition has regions that an account may disable; this region is always enabled.
_PARTITION, _ALWAYS_ON = "aws", "us-east-1"


def account_session(region: str | None = None) -> boto3.Session:
    """Open a session of the account and region that the CDK CLI would use, or of another region.

    boto3 itself does not read AWS_REGION, which the CDK and the AWS CLI prefer. trainctl's --region and
    --profile are in the environment by now. Credentials of a role are cached where the AWS CLI caches them,
    so that the user types the code of an MFA device once in their lifetime. Raises botocore's errors.
    """
    core = botocore.session.get_session()
    roles = core.get_component("credential_provider").get_provider("assume-role")
    roles.cache = JSONFileCache(str(Path.home() / ".aws" / "cli" / "cache"))
    return boto3.Session(botocore_session=core, region_name=region or os.environ.get("AWS_REGION") or None)


def account_clients(region: str | None = None) -> ClientOf:
    """Return a function that creates the client of each service once."""
    session = account_session(region)
    return cache(lambda service: session.client(service, config=_PATIENCE))


def unless(call: Callable[[], Any], *codes: str) -> Any | None:
    """Return AWS's answer, None for an error with one of these codes. Raises other errors."""
    try:
        return call()
    except ClientError as error:
        if error.response["Error"]["Code"] in codes:
            return None
        raise


def if_there(call: Callable[[], Any]) -> Any | None:
    """Return CloudFormation's answer, None if there is no such stack. Raises other errors."""
    try:
        return call()
    except ClientError as error:
        if "does not exist" in str(error):
            return None
        raise


def every(client: Any, operation: str, *keys: str, **asked: Any) -> Iterator[Any]:
    """Yield the items of all pages of an answer. Raises botocore's errors.

    Args:
        operation: method of the client, such as describe_instances.
        keys: key of the list of items; before it, keys of the lists that it is in.
        asked: arguments of the operation.
    """
    for page in client.get_paginator(operation).paginate(**asked):
        found = [page]
        for key in keys:
            found = [item for each in found for item in each[key]]
        yield from found


def local_endpoint(client: ClientOf) -> str:
    """Return the host of the local AWS of a rehearsal; "" for AWS."""
    host = urlsplit(client("ssm").meta.endpoint_url).hostname or ""
    with contextlib.suppress(ValueError):  # the name of a host
        return host if ipaddress.ip_address(host).is_loopback else ""
    return host if host == "localhost" else ""


def read_parameter(name: str, ssm: Any) -> str | None:
    """Return the value of a parameter of SSM, None without it. Raises botocore's errors."""
    answer = unless(lambda: ssm.get_parameter(Name=name), "ParameterNotFound")
    return str(answer["Parameter"]["Value"]) if answer else None


def region_turned_off() -> str | None:
    """Return the session's region if it refuses credentials that another region accepts, else None.

    A region that is not enabled in the account does not know its credentials, and calls them invalid.
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
