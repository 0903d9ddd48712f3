"""Custom resources: the limit of their answers, and Deletes after a failed Create.

CloudFormation fails an answer of more than 4096 bytes (its guide, "Custom resource response objects") and
sends a Delete after a failed Create; ministack's engine does neither. On AWS the Delete has the
PhysicalResourceId of the failed answer, and is part of the rollback. After a deploy with rollback disabled it
is sent with the next operation on the stack.
"""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from rehearsal.local_aws.cloudformation import handlers
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.moto_types import Created, Properties

_TYPE = "AWS::CloudFormation::CustomResource"
_MOST_BYTES = 4096
_IDS = ("StackId", "RequestId", "LogicalResourceId", "PhysicalResourceId")

_answered: dict[tuple[str, str], str] = {}
"""PhysicalResourceId of the last answer, by stack id and logical id."""
_failed: dict[str, dict[str, Callable[[], None]]] = {}
"""Deletes that are still to be sent, by stack name."""


def install() -> None:
    """Fail answers that are too long, and send a failed custom resource its Delete when AWS would."""
    hooks.replace("CUSTOM_RESOURCE_ANSWER", receive)
    hooks.replace("CREATE_CUSTOM_RESOURCE", _owe_delete)
    handlers.wrap(_TYPE, create=hooks.find("CREATE_CUSTOM_RESOURCE"))
    hooks.replace("ROLL_BACK", _send_first)
    hooks.replace("DELETE_STACK", _send_first)


def receive(original: Callable[[str, dict[str, Any]], bool]) -> Callable[[str, dict[str, Any]], bool]:
    """Remember the id of each answer, and replace one that is too long by CloudFormation's failure."""

    def deliver(token: str, response: dict[str, Any]) -> bool:
        key = (str(response.get("StackId")), str(response.get("LogicalResourceId")))
        _answered[key] = str(response.get("PhysicalResourceId") or "")
        return original(token, _limited(response))

    return deliver


def _limited(response: dict[str, Any]) -> dict[str, Any]:
    sent = json.dumps(response, separators=(",", ":"), ensure_ascii=False).encode()
    if len(sent) <= _MOST_BYTES:
        return response
    ids = {key: response[key] for key in _IDS if key in response}
    return {**ids, "Status": "FAILED", "Reason": "Response object is too long."}


def _owe_delete(original: Callable[..., Created]) -> Callable[..., Created]:
    delete = hooks.find("DELETE_CUSTOM_RESOURCE")
    stacks = hooks.find("STACKS")

    def create(logical_id: str, props: Properties, stack_name: str, resource_type: str = _TYPE) -> Created:
        try:
            created = original(logical_id, props, stack_name, resource_type)
            _failed.get(stack_name, {}).pop(logical_id, None)  # it has the same physical id
        except RuntimeError:
            stack = stacks[stack_name]
            physical_id = _answered.get((stack["StackId"], logical_id))

            def send() -> None:
                delete(physical_id, props, stack_name, logical_id, resource_type)

            if physical_id:
                _failed.setdefault(stack_name, {})[logical_id] = send
                if not stack.get("DisableRollback"):
                    send()  # if it fails, the next operation on the stack sends it again
                    _failed[stack_name].pop(logical_id)
            raise
        return created

    return create


def _send_first(original: Callable[..., Any]) -> Callable[..., Any]:
    async def then(stack_name: str, *arguments: Any, **options: Any) -> Any:
        for send in _failed.pop(stack_name, {}).values():
            await asyncio.to_thread(send)
        return await original(stack_name, *arguments, **options)

    return then
