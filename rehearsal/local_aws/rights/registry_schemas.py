"""Schemas of the CloudFormation registry, which cfn-lint has offline: the actions of each type's handlers."""

import json
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rehearsal.local_aws.address import REGION
from training_cluster.catalog.yaml_file import read_yaml

Handlers = dict[str, tuple[str, ...]]
"""Actions by handler: create, read, update, delete, and tagging."""

# To import cfn-lint takes seconds; its data are files.
_SCHEMAS = Path(str(getattr(find_spec("cfnlint"), "origin", ""))).parent / "data" / "schemas"
_HANDLERS = ("create", "read", "update", "delete")


class UnknownTypeError(LookupError):
    """A type whose handlers nobody declared."""


@cache
def schema(type_: str) -> dict[str, Any]:
    """Return the registry's schema of a resource type.

    Raises:
        UnknownTypeError: the registry has no such type.
    """
    name = _names().get(type_)
    if name is None:
        raise UnknownTypeError(f"cfn-lint's copy of the registry has no type {type_}")
    found: dict[str, Any] = json.loads((_SCHEMAS / "resources" / f"{name}.json").read_text(encoding="utf-8"))
    return found


@cache
def handlers(type_: str) -> Handlers:
    """Return the actions that the handlers of a resource type declare.

    Raises:
        UnknownTypeError: neither the registry nor undeclared.yaml has any.
    """
    undeclared = read_yaml(Path(__file__).with_name("undeclared.yaml"))
    if type_ in undeclared:
        return {name: tuple(actions) for name, actions in undeclared[type_].items()}
    found = schema(type_)
    if "handlers" not in found:
        raise UnknownTypeError(f"the registry's schema of {type_} declares no handlers: see undeclared.yaml")
    parts = {name: found["handlers"].get(name, {}) for name in _HANDLERS}
    parts["tagging"] = found.get("tagging", {})
    return {name: tuple(part.get("permissions", ())) for name, part in parts.items()}


@cache
def _names() -> dict[str, str]:
    names: dict[str, str] = json.loads(
        (_SCHEMAS / "providers" / f"{REGION}.json").read_text(encoding="utf-8")
    )
    return names
