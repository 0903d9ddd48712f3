"""Corrections to ministack's CloudFormation engine."""

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.ministack_client import client

_VIRTUAL_HOST = re.compile(
    r"https?://(?P<bucket>[a-z0-9.-]+?)\.s3[.-][a-z0-9.-]*amazonaws\.com[a-z.]*/(?P<key>.*)$"
)
_POLL_S = 0.05
Resolved = tuple[list[dict[str, Any]], dict[str, dict[str, str]]]
_WAIT_CONDITION = "AWS::CloudFormation::WaitCondition"
_NO_USERS = (
    "users: this rehearsal cannot make users, whose files it has no copy of. Nothing was changed. "
    "Type: sudo make rehearse USERS=2, or the same deploy without -c users"
)


def install() -> None:
    """Install the corrections: templates, order, deletions, parameters, descriptions, exports."""
    hooks.replace("DELETE_STACK", _delete_at_rest)
    hooks.replace("TEMPLATE_URL", _accept_virtual_hosts)
    hooks.replace("CREATION_ORDER", _wait_conditions_last)
    hooks.replace("PARAMETER_VALUE", _name_missing_parameter)
    hooks.replace("EXECUTE_CHANGE_SET", _describe_stacks_of_change_sets)
    hooks.replace("STACK_OUTPUTS", _keep_used_exports)


def _delete_at_rest(original: Callable[..., Any]) -> Callable[..., Any]:
    """Delete a stack after its current operation, which the engine, unlike AWS, cannot stop."""
    stacks = hooks.find("STACKS")

    async def delete(stack_name: str, stack_id: str, retain_resources: Any = (), force: bool = False) -> None:
        while (stack := stacks.get(stack_name)) and stack["StackStatus"].endswith("_IN_PROGRESS"):
            if stack["StackStatus"] == "DELETE_IN_PROGRESS":
                return
            await asyncio.sleep(_POLL_S)
        if stack and stack["StackId"] == stack_id:
            await original(stack_name, stack_id, retain_resources, force)

    return delete


def _describe_stacks_of_change_sets(original: Callable[..., Any]) -> Callable[..., Any]:
    stacks = hooks.find("STACKS")

    async def deploy(
        stack_name: str, stack_id: str, template: dict[str, Any], *rest: Any, **more: Any
    ) -> None:
        stack = stacks[stack_name]
        former, stack["Description"] = stack.get("Description", ""), template.get("Description", "")
        await original(stack_name, stack_id, template, *rest, **more)
        if stack["StackStatus"].startswith("UPDATE_ROLLBACK"):  # it has its former template again
            stack["Description"] = former

    return deploy


def path_style(url: str) -> str:
    """Rewrite a virtual-host address of S3 as the path-style address that the engine parses."""
    match = _VIRTUAL_HOST.match(url)
    return f"https://localhost/{match['bucket']}/{match['key']}" if match else url


def _accept_virtual_hosts(original: Callable[..., Any]) -> Callable[..., Any]:
    def resolve(params: dict[str, Any], body_key: str, url_key: str, label: str) -> Any:
        url = params.get(url_key)
        if isinstance(url, list) and url:
            params = {**params, url_key: [path_style(url[0]), *url[1:]]}
        return original(params, body_key, url_key, label)

    return resolve


def _wait_conditions_last(original: Callable[..., list[str]]) -> Callable[..., list[str]]:
    def sort(resources: dict[str, Any], conditions: dict[str, Any]) -> list[str]:
        order, late = original(resources, conditions), list[str]()
        for name in order:
            text = json.dumps(resources[name])
            if resources[name].get("Type") == _WAIT_CONDITION or any(each in text for each in late):
                late.append(name)
        return [name for name in order if name not in late] + late

    return sort


def refuse_users_while(follows: Path) -> None:
    """Refuse the template of a cluster with users while this file exists: the program in it makes none."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def resolve(*arguments: Any) -> Any:
            body, error = original(*arguments)
            if error or not follows.exists() or not _has_users(body):
                return body, error
            error = f"<Type>Sender</Type><Code>ValidationError</Code><Message>{_NO_USERS}</Message>"
            answer = f"<ErrorResponse><Error>{error}</Error></ErrorResponse>"
            return None, (400, {"Content-Type": "application/xml"}, answer.encode())

        return resolve

    hooks.replace("TEMPLATE_URL", make)


def _has_users(template: Any) -> bool:
    from training_cluster.flags.given import read_given_flags  # noqa: PLC0415 - the server starts without it

    try:
        return "users" in (read_given_flags(json.loads(template)) or {})
    except (TypeError, ValueError):
        return False  # YAML, which the CDK does not write


def _name_missing_parameter(original: Callable[..., Any]) -> Callable[..., Any]:
    """Report a template's parameter that is missing in Systems Manager with CreateChangeSet's message."""

    def resolve(name: str, *reference: Any, **options: Any) -> Any:
        value = original(name, *reference, **options)
        if value is None and not reference and not options:  # a dynamic reference has its own message
            raise ValueError(f"Unable to fetch parameters [{name}] from parameter store for this account.")
        return value

    return resolve


def _keep_used_exports(original: Callable[..., Resolved]) -> Callable[..., Resolved]:
    """Roll back a change of an export in use, which the engine accepts."""

    def resolve(*arguments: Any) -> Resolved:
        outputs, wanted = original(*arguments)
        *_, stack_name, stack_id = arguments
        pages = client("cloudformation").get_paginator("list_exports").paginate()
        for former in pages.search("Exports[]"):
            name = former["Name"]
            if former["ExportingStackId"] != stack_id:
                continue
            value = str(wanted[name]["Value"]) if name in wanted else None
            users = _users(name, stack_name) if value != former["Value"] else []
            if users:
                change = "deleted" if value is None else "updated"
                raise ValueError(f"Export {name} cannot be {change} as it is in use by {' and '.join(users)}")
        return outputs, wanted

    return resolve


def _users(export: str, exporter: str) -> list[str]:
    stacks, imports = hooks.find("STACKS"), hooks.find("IMPORTED_EXPORTS")
    return [
        name
        for name, stack in stacks.items()
        if name != exporter and stack["StackStatus"] != "DELETE_COMPLETE" and export in imports(stack, name)
    ]
