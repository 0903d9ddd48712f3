"""The single port: a request's signature names its service, which determines what answers."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from rehearsal.local_aws.emulators.moto_services import SERVICES, Answer, MotoServices
from rehearsal.local_aws.head_node import run_commands
from rehearsal.local_aws.image_builder import actions as image_builder_actions
from rehearsal.local_aws.rights.gate import Gate

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_CREDENTIAL = re.compile(r"Credential=[^/]+/\d+/[^/]+/(?P<service>[^/]+)/aws4_request")
_ACTION = re.compile(rb"(?:^|&)Action=(\w+)")


_JSON = [("content-type", "application/x-amz-json-1.1")]
_NO_PRICES: Answer = (
    400,
    _JSON,
    b'{"__type": "UnsupportedOperationException", "message": "the local AWS has no price list"}',
)


class Gateway:
    """ASGI application: moto for moto_services.SERVICES, ours for Image Builder, ministack for all others.

    Args:
        gate: refuses requests of strangers, and judges the rights of functions' requests.
        log: takes one line per request, `service action status`.
    """

    def __init__(self, *, ministack: Application, moto: MotoServices, gate: Gate, log: Path) -> None:
        self._ministack, self._moto, self._gate = ministack, moto, gate
        self._log = log.open("a", buffering=1)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request of an AWS client."""
        if scope["type"] == "websocket":  # only services that nothing here uses have websockets
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._ministack(scope, receive, send)
            return
        headers = {k.decode().lower(): v.decode("latin-1") for k, v in scope["headers"]}
        match = _CREDENTIAL.search(headers.get("authorization", ""))
        service = match["service"] if match else "-"
        body = await _read(receive)
        refusal, why = self._gate.stranger(scope, headers, service), "no access key of this local AWS"
        if not refusal and self._gate.concerns(scope, headers, service):
            refusal = await asyncio.to_thread(self._gate.refusal, scope, headers, service, body)
            why = "a right is missing"
        if refusal:
            self._log.write(f"{service} {scope['path'][:120]} {refusal[0]}: {why}\n")
            await _send(send, refusal)
            return
        target = headers.get("x-amz-target", "").rpartition(".")[2]
        if answer := await asyncio.to_thread(self._answer, scope, headers, service, body):
            action = _ACTION.search(body)
            self._log.write(
                f"{service} {action[1].decode() if action else target or scope['path']} {answer[0]}\n"
            )
            await _send(send, answer)
            return
        self._log.write(f"{service} {target or scope['method'] + ' ' + scope['path'][:120]}\n")
        await self._ministack(scope, _again(body, receive), send)

    def _answer(self, scope: Scope, headers: dict[str, str], service: str, body: bytes) -> Answer | None:
        """Answer a request that is not ministack's. It blocks, so call it in a worker thread."""
        if service in SERVICES:
            return self._moto.answer(scope, headers, body)
        if service == image_builder_actions.SERVICE:
            status, answered = image_builder_actions.answer(
                scope["path"], scope.get("query_string", b""), body
            )
            return status, image_builder_actions.HEADERS, answered
        if service == "pricing":
            return _NO_PRICES
        if service == "ssm" and (found := run_commands.answer(headers, body)):
            return found[0], _JSON, found[1].encode()
        return None


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return bytes(body)


def _again(body: bytes, receive: Receive) -> Receive:
    """Return a receiver that begins with a body that was read already."""
    first = [{"type": "http.request", "body": body, "more_body": False}]

    async def read() -> dict[str, Any]:
        return first.pop() if first else await receive()

    return read


async def _send(send: Send, answer: Answer) -> None:
    status, headers, body = answer
    encoded = [(name.lower().encode(), str(value).encode()) for name, value in headers]
    await send({"type": "http.response.start", "status": status, "headers": encoded})
    await send({"type": "http.response.body", "body": body})
