"""The check of a request's rights, before any service answers it."""

import uuid
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.emulators import hooks, ministack_hooks
from rehearsal.local_aws.emulators.moto_services import Answer
from rehearsal.local_aws.rights import sessions
from rehearsal.local_aws.rights.judge import Judge
from rehearsal.local_aws.rights.requests import Request, needs
from rehearsal.local_aws.rights.stacks import Stacks

_STACKS = "cloudformation"


class Gate:
    """Judges the requests of functions, and records whose rights a stack's operation uses.

    Args:
        address: local AWS, whose folder has the files of judged and denied calls.
    """

    def __init__(self, address: LocalAwsAddress) -> None:
        self._judge = Judge(address)
        self._stacks = Stacks(self._judge)
        self._key_of = hooks.find(ministack_hooks.REQUEST_KEY)
        self._refuse = hooks.find(ministack_hooks.REFUSAL)

    def install(self) -> None:
        """Let functions sign with sessions of their roles, and judge what CloudFormation makes for them."""
        sessions.install()
        self._stacks.install()

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
                status, found, answer = self._refuse(
                    service,
                    denial.need.action,
                    denial.role,
                    str(uuid.uuid4()),
                    message="" if service in {"ssm", "logs"} else f"The {denial}",
                    headers=dict(headers),
                    resource_arn=denial.need.resource,
                )
                return status, list(found.items()), answer
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
