"""Stacks that a function creates: CloudFormation creates their resources with the rights of its role."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.rights.judge import Judge
from rehearsal.local_aws.rights.registry_handlers import Resource, needs
from rehearsal.local_aws.rights.sessions import role_of

Properties = dict[str, Any]

_CHANGES = {"CreateStack", "UpdateStack", "DeleteStack", "ExecuteChangeSet", "RollbackStack"}


class Stacks:
    """The caller of each stack's current operation; `judge` judges the rights of handlers."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._callers: dict[str, str] = {}
        self._stacks = hooks.find("STACKS")

    def install(self) -> None:
        """Judge each creation, update and deletion of a resource before it happens."""
        hooks.replace("CREATE_RESOURCE", self._create)
        hooks.replace("UPDATE_RESOURCE", self._update)
        hooks.replace("DELETE_RESOURCE", self._delete)

    def begin(self, *, action: str, stack: str, access_key: str) -> None:
        """Record who begins an operation on a stack.

        Args:
            action: action of CloudFormation's API.
            stack: name or ARN.
        """
        if action not in _CHANGES:
            return
        name = stack.split("/")[1] if stack.startswith("arn:") else stack
        if role_of(access_key):
            self._callers[name] = access_key
        else:
            self._callers.pop(name, None)

    def _create(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def create(type_: str, logical_id: str, properties: Properties, stack: str) -> Any:
            self._refuse("create", _resource(type_, logical_id, None, properties, stack))
            return original(type_, logical_id, properties, stack)

        return create

    def _update(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def update(
            type_: str, physical_id: str, old: Properties, new: Properties, stack: str, *rest: Any
        ) -> Any:
            if old != new:
                self._refuse("update", _resource(type_, rest[0] if rest else None, physical_id, new, stack))
            return original(type_, physical_id, old, new, stack, *rest)

        return update

    def _delete(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def delete(
            type_: str,
            physical_id: str,
            properties: Properties,
            stack_name: str | None = None,
            *rest: Any,
            **named: Any,
        ) -> Any:
            logical_id = rest[0] if rest else named.get("logical_id")
            self._refuse("delete", _resource(type_, logical_id, physical_id, properties, stack_name))
            return original(type_, physical_id, properties, stack_name, *rest, **named)

        return delete

    def _refuse(self, operation: str, resource: Resource) -> None:
        caller = self._callers.get(self._root(resource.stack))
        if caller is None:
            return
        template = (self._stacks.get(resource.stack) or {}).get("_template") or {}
        attributes = frozenset(template.get("Resources", {}).get(resource.logical_id, ()))
        resource = replace(resource, attributes=attributes)
        by = f"{resource.type} {operation}"
        denial = self._judge.denial(caller, needs(resource, operation), by=by)
        if denial:
            raise PermissionError(
                f'Resource handler returned message: "{denial}" (HandlerErrorCode: AccessDenied)'
            )

    def _root(self, stack: str) -> str:
        while parent := (self._stacks.get(stack) or {}).get("_parent_stack_name"):
            stack = parent
        return stack


def _resource(
    type_: str, logical_id: str | None, physical_id: str | None, properties: Properties, stack: str | None
) -> Resource:
    return Resource(
        type=type_,
        logical_id=logical_id or "",
        physical_id=physical_id or "",
        stack=stack or "",
        properties=properties or {},
    )
