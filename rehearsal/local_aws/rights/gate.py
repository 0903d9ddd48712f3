"""The checks of a request before any service answers it: its access key, and the rights of its role.

All users of the machine can reach a local AWS's port, so each start has its own access key. Every signed
request contains the id of an access key, and requests are encrypted. The gate checks this id, which nobody
can guess, and not the signature. Sessions have their own keys; sessions.py makes those of functions.
"""

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.moto_services import Answer
from rehearsal.local_aws.rights import sessions
from rehearsal.local_aws.rights.judge import Judge
from rehearsal.local_aws.rights.requests import Request, needs
from rehearsal.local_aws.rights.stacks import Stacks

_STACKS = "cloudformation"
# Addresses at which functions and nodes answer CloudFormation; their token replaces AWS's pre-signed URL.
_ANSWERS = ("/_ministack/cfn-response/", "/_ministack/cfn-signal/")
_UNKNOWN = ("UnrecognizedClientException", "The security token included in the request is invalid.")
_MISSING = ("MissingAuthenticationToken", "Request is missing Authentication Token")


class Gate:
    """Refuses strangers, judges the requests of functions, and records whose rights a stack's operation uses.

    Args:
        address: local AWS, with its own access key and the files of judged and denied calls.
    """

    def __init__(self, address: LocalAwsAddress) -> None:
        self._judge = Judge(address)
        self._stacks = Stacks(self._judge)
        self._own = address.access_key
        self._sessions: Mapping[str, Any] = hooks.find("SESSIONS")
        self._key_of = hooks.find("REQUEST_KEY")
        self._refuse = hooks.find("REFUSAL")

    def install(self) -> None:
        """Let functions sign with sessions of their roles, and judge what CloudFormation makes for them."""
        sessions.install()
        self._stacks.install()

    def stranger(self, scope: Mapping[str, Any], headers: Mapping[str, str], service: str) -> Answer | None:
        """Return AWS's error for a request without an access key of this local AWS; None with one."""
        if scope["method"] == "PUT" and scope["path"].startswith(_ANSWERS):
            return None
        key = self._access_key(scope, headers)
        if key == self._own or key in self._sessions:
            return None
        code, message = _UNKNOWN if key else _MISSING
        return self._error(service, headers, error_code=code, message=message)

    def concerns(self, scope: Mapping[str, Any], headers: Mapping[str, str], service: str) -> bool:
        """Return True for requests of functions and for all of CloudFormation."""
        return service == _STACKS or sessions.role_of(self._access_key(scope, headers)) is not None

    def refusal(
        self, scope: Mapping[str, Any], headers: Mapping[str, str], service: str, body: bytes
    ) -> Answer | None:
        """Judge one request.

        Returns:
            None if the request is allowed; otherwise AWS's own error in the service's protocol.
        """
        access_key = self._access_key(scope, headers)
        request = Request(
            service=service,
            method=scope["method"],
            path=scope["path"],
            query=scope.get("query_string", b"").decode("latin-1"),
            headers=headers,
            body=body,
        )
        if sessions.role_of(access_key):
            needed = needs(request)
            denial = self._judge.denial(access_key, needed, by=f"request {needed[0].action}")
            if denial:
                message = "" if service in {"ssm", "logs"} else f"The {denial}"
                need, role = denial.need, denial.role
                return self._error(
                    service, headers, need.action, role, message=message, resource_arn=need.resource
                )
        if service == _STACKS:
            self._stacks.begin(
                action=request.parameter("Action"),
                stack=request.parameter("StackName"),
                access_key=access_key,
            )
        return None

    def _access_key(self, scope: Mapping[str, Any], headers: Mapping[str, str]) -> str:
        key: str = self._key_of(headers, parse_qs(scope.get("query_string", b"").decode("latin-1")))
        return key

    def _error(
        self, service: str, headers: Mapping[str, str], action: str = "", role: str = "", **more: str
    ) -> Answer:
        """Return AWS's own error in the service's protocol."""
        request_id = str(uuid.uuid4())
        status, found, body = self._refuse(service, action, role, request_id, headers=dict(headers), **more)
        return status, list(found.items()), body
