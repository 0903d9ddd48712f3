"""Clients of ministack's services in this process: AWS's own interface instead of ministack's records."""

import asyncio
import contextvars
import io
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
import urllib3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config

from rehearsal.local_aws.address import REGION


@cache
def client(service: str) -> Any:
    """Return a client that calls ministack's service directly, with every right."""
    made = boto3.Session("local", "local", region_name=REGION).client(  # type: ignore[call-overload]
        service,
        endpoint_url="https://localhost",
        config=Config(
            s3={"addressing_style": "path"},
            retries={"max_attempts": 0},
            parameter_validation=False,  # CloudFormation's properties have text where an API has numbers
            request_checksum_calculation="when_required",
        ),
    )
    name = made.meta.service_model.signing_name

    def answer(request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        # A thread of its own has no event loop, while the caller's may have one that runs.
        with ThreadPoolExecutor(1) as thread:
            context = contextvars.copy_context()
            return thread.submit(context.run, asyncio.run, _answer(name, request)).result()

    made.meta.events.register("before-send", answer)
    return made


async def _answer(service: str, request: AWSPreparedRequest) -> AWSResponse:
    from ministack.app import SERVICE_HANDLERS  # noqa: PLC0415

    url = urlsplit(request.url)
    status, headers, body = await SERVICE_HANDLERS[service](
        request.method,
        unquote(url.path),
        {name.lower(): text(value) for name, value in request.headers.items()},
        body_of(request),
        parse_qs(url.query, keep_blank_values=True),
    )
    return response(request, status, headers.items(), body)


def body_of(request: AWSPreparedRequest) -> bytes:
    """Return the body of one request of botocore's."""
    body: Any = request.body or b""
    body = body.read() if hasattr(body, "read") else body
    return body.encode() if isinstance(body, str) else bytes(body)


def text(value: str | bytes) -> str:
    """Return a header's value as botocore sends it."""
    return value.decode() if isinstance(value, bytes) else value


def response(
    request: AWSPreparedRequest, status: int, headers: Iterable[tuple[str, str]], body: bytes
) -> AWSResponse:
    """Make a response that botocore parses."""
    raw = urllib3.HTTPResponse(
        io.BytesIO(body), dict(headers), status, preload_content=False, request_method=request.method
    )
    return AWSResponse(request.url, status, raw.headers, raw)  # type: ignore[arg-type]  # as botocore does
