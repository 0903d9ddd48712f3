"""Changes of exports in use, which CloudFormation rolls back and ministack's engine accepts."""

from collections.abc import Callable
from typing import Any

from rehearsal.local_aws.emulators import hooks, ministack_hooks
from rehearsal.local_aws.emulators.ministack_client import client

Resolved = tuple[list[dict[str, Any]], dict[str, dict[str, str]]]


def install() -> None:
    """Check each stack's exports before they change."""
    hooks.replace(ministack_hooks.STACK_OUTPUTS, _refuse_changes_of_what_is_used)


def _refuse_changes_of_what_is_used(original: Callable[..., Resolved]) -> Callable[..., Resolved]:
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
    stacks, imports = hooks.find(ministack_hooks.STACKS), hooks.find(ministack_hooks.IMPORTED_EXPORTS)
    return [
        name
        for name, stack in stacks.items()
        if name != exporter and stack["StackStatus"] != "DELETE_COMPLETE" and export in imports(stack, name)
    ]
