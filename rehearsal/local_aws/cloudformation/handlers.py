"""Handlers of ministack's CloudFormation engine: new handlers, and wrappers of its own handlers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.moto_types import Attributes, Created, Handler, Properties

Create = Callable[[str, Properties, str], Created]
Update = Callable[[str, Properties, Properties, str, str], Created]
Delete = Callable[[str, Properties], object]


def register(name: str, handler: Handler) -> None:
    """Register the handler of one resource type."""
    hooks.find("RESOURCE_HANDLERS")[name] = handler


def original(name: str) -> Handler:
    """Return the current handler of one resource type."""
    handler: Handler = hooks.find("RESOURCE_HANDLERS")[name]
    return handler


def wrap(name: str, **parts: Callable[..., Any]) -> None:
    """Replace parts (create, update, delete) of a resource type's handler."""
    takes_logical_id = {"update_with_logical_id": True} if "update" in parts else {}
    register(name, {**original(name), **takes_logical_id, **parts})


def before_create(name: str, look: Callable[[Properties], Properties | None]) -> None:
    """Let a function check the properties of each new resource of a type, or return others for it."""
    create: Create = original(name)["create"]
    wrap(name, create=lambda id_, properties, stack: create(id_, look(properties) or properties, stack))


def refuse_while(file: Path, name: str) -> None:
    """Refuse new resources of a type while a file exists, as when the account's quota is used up."""

    def look(_: Properties) -> None:
        if file.exists():
            raise RuntimeError(f"Service limit exceeded: {name} (as a fault)")

    before_create(name, look)


def simple(create: Create, delete: Delete, update: Update | None = None) -> Handler:
    """Make a handler from functions; without an update, the attributes of the creation stay."""
    attributes: dict[str, Attributes] = {}

    def remember(logical_id: str, properties: Properties, stack_name: str) -> Created:
        physical_id, attributes[physical_id] = create(logical_id, properties, stack_name)
        return physical_id, attributes[physical_id]

    def keep(physical_id: str, _old: Properties, _new: Properties, _stack: str, _logical_id: str) -> Created:
        return physical_id, attributes.get(physical_id, {})

    return {"create": remember, "update": update or keep, "update_with_logical_id": True, "delete": delete}


def changed(old: Properties, new: Properties) -> set[str]:
    """Return the names of the properties that differ."""
    return {key for key in {*old, *new} if old.get(key) != new.get(key)}
