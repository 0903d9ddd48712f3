"""Fault injection: one call of AWS fails, from its client's view; runs in .venv-pcluster.

A call is one operation of an AWS client with all of its retries: each attempt of the chosen call fails, since
a fault that botocore's own retries hide would prove nothing.
"""

import io
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from botocore.awsrequest import AWSResponse
from botocore.endpoint import Endpoint
from botocore.exceptions import ConnectionClosedError, ReadTimeoutError

_READS = ("Describe", "Get", "List", "Head", "Filter", "Simulate")
ANY = "*"
"""Pattern of a fault that affects every call."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A fault, and the call of AWS in which it is injected."""

    kind: str
    """One of cases.KINDS, a key of _ERRORS, or `killed`."""
    call: str
    """`service.Operation`, such as `cloudformation.CreateStack`, or ANY."""
    occurrence: int
    """Number of the call among calls of its name, from 1; with ANY, among all."""
    times: int = 1
    """Number of consecutive calls that fail."""

    def strikes(self, calls: list[str]) -> bool:
        """Return True if the last of the recorded calls has to fail."""
        count = len(calls) if self.call == ANY else calls.count(self.call)
        return self.call in (ANY, calls[-1]) and 0 <= count - self.occurrence < self.times


class KilledError(BaseException):
    """The end of the function's process, which no `except Exception` sees."""

    def __str__(self) -> str:
        return "Runtime exited with error: signal: killed"


# 9 KB; and the same with halves of surrogate pairs, which JSON can express and UTF-8 cannot.
_LONG_MESSAGE = "The organisation's policy denies this. " * 240
_UNPRINTABLE_MESSAGE = "The organisation's policy \ud83d denies this \udc00. " * 200

_ERRORS = {
    "throttled": (400, "Throttling", "Rate exceeded (injected)"),
    "error-500": (500, "InternalFailure", "An internal error has occurred (injected)"),
    "expired": (403, "ExpiredToken", "The security token included in the request is expired (injected)"),
    "denied": (403, "AccessDenied", "User is not authorized to perform this action (injected)"),
    "denied at length": (403, "AccessDeniedException", _LONG_MESSAGE),
    "denied unprintably": (403, "AccessDeniedException", _UNPRINTABLE_MESSAGE),
    "not updatable": (
        400,
        "ValidationError",
        "The stack's state is UPDATE_ROLLBACK_FAILED; no update is possible",
    ),
    "untagged volume": (
        403,
        "UnauthorizedOperation",
        "You are not authorized to perform this operation. User: arn:aws:sts::123456789012:assumed-role/r/s "
        "is not authorized to perform: ec2:RunInstances on resource: "
        "arn:aws:ec2:us-east-1:123456789012:volume/* with an explicit deny in a service control policy",
    ),
}
# Some services have error codes of their own.
_CODES = {
    ("ec2", "throttled"): "RequestLimitExceeded",
    ("ec2", "denied"): "UnauthorizedOperation",
    ("ec2", "error-500"): "InternalError",
    ("s3", "throttled"): "SlowDown",
    ("dynamodb", "throttled"): "ThrottlingException",
    ("ssm", "throttled"): "ThrottlingException",
    ("logs", "throttled"): "ThrottlingException",
    ("dynamodb", "denied"): "AccessDeniedException",
    ("ssm", "denied"): "AccessDeniedException",
    ("logs", "denied"): "AccessDeniedException",
}


class Wire:
    """The connection between the provider and AWS. Calls outside `watched` pass unchanged and unrecorded."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        """Calls recorded since `arm`, in order."""
        self.fired = False
        """True once the fault has occurred."""
        self._watching = False
        self._fault: Fault | None = None
        self._shown: dict[str, str] = {}
        self._struck: Any = None
        self._attempts = 0
        self._patch()

    def arm(self, fault: Fault | None) -> None:
        """Clear the recorded calls and arm a fault."""
        self.calls, self.fired, self._fault = [], False, fault

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Record the calls in this block, which are the provider's."""
        self._watching = True
        try:
            yield
        finally:
            self._watching = False

    @contextmanager
    def showing(self, stack_name: str, status: str) -> Iterator[None]:
        """Show the provider this status of a stack."""
        self._shown = {stack_name: status}
        try:
            yield
        finally:
            self._shown = {}

    def _patch(self) -> None:
        endpoint: Any = Endpoint  # botocore's stubs lack the second function
        make_request, send = endpoint.make_request, endpoint._send

        def one_call(self_: Any, operation: Any, request: Any) -> Any:
            if not self._watching:
                return make_request(self_, operation, request)
            service = operation.service_model.service_name
            call = f"{service}.{operation.name}"
            self.calls.append(call)
            fault = self._fault
            struck = operation if fault and fault.strikes(self.calls) else None
            if fault and struck and fault.kind == "killed":
                make_request(self_, operation, request)
                self.fired = True
                raise KilledError
            self._struck, self._attempts = struck, 0
            try:
                answer = make_request(self_, operation, request)
            finally:
                self._struck = None
            for stack in answer[1].get("Stacks") or []:
                stack["StackStatus"] = self._shown.get(stack["StackName"], stack["StackStatus"])
            return answer

        def one_attempt(self_: Any, request: Any) -> Any:
            if self._struck is None:
                return send(self_, request)
            self.fired = True
            self._attempts += 1
            return self._strike(request, lambda: send(self_, request))

        endpoint.make_request, endpoint._send = one_call, one_attempt

    def _strike(self, request: Any, send: Callable[[], Any]) -> Any:
        assert self._fault is not None
        if self._fault.kind == "dropped":
            raise ConnectionClosedError(endpoint_url=request.url)
        if self._fault.kind == "timeout":
            # AWS executes the request and its answer is lost. botocore repeats a changing request,
            # and the second answer arrives.
            answer = send()
            if self._attempts > 1 and not self._struck.name.startswith(_READS):
                return answer
            raise ReadTimeoutError(endpoint_url=request.url)
        return self._error(request)

    def _error(self, request: Any) -> AWSResponse:
        assert self._fault is not None
        model = self._struck.service_model
        status, code, message = _ERRORS[self._fault.kind]
        code = _CODES.get((model.service_name, self._fault.kind), code)
        body, content_type = _body(model.metadata["protocol"], code, message)
        headers: Any = {"content-type": content_type, "x-amzn-errortype": code}
        return AWSResponse(request.url, status, headers, _Raw(body))


def _body(protocol: str, code: str, message: str) -> tuple[bytes, str]:
    if protocol in ("json", "rest-json", "smithy-rpc-v2-cbor"):
        return json.dumps({"__type": code, "message": message}).encode(), "application/x-amz-json-1.1"
    inner = f"<Code>{code}</Code><Message>{message}</Message>"
    if protocol == "ec2":
        text = f"<Response><Errors><Error>{inner}</Error></Errors><RequestID>x</RequestID></Response>"
    elif protocol == "rest-xml":
        text = f"<Error>{inner}<RequestId>x</RequestId></Error>"
    else:
        inner = f"<Error><Type>Sender</Type>{inner}</Error>"
        text = f"<ErrorResponse>{inner}<RequestId>x</RequestId></ErrorResponse>"
    return text.encode(), "text/xml"


class _Raw(io.BytesIO):
    """A urllib3 response, as far as botocore reads it."""

    def stream(self, **_options: Any) -> Iterator[bytes]:
        yield self.read()
