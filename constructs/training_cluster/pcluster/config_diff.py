"""Finds the differences of two cluster configs. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

_NAMES = ("Name", "Key")
_SHOWN = 60

Difference = tuple[str, Any, Any]
"""Path of the key in ParallelCluster's form, old value and new value; None for a missing value."""


def differences(before: Any, after: Any, path: str = "") -> Iterator[Difference]:
    """Yield each key that differs, with a path such as Scheduling.SlurmQueues[gpu].CapacityType."""
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in dict.fromkeys([*before, *after]):
            yield from differences(before.get(key), after.get(key), f"{path}.{key}" if path else key)
        return
    old, new = _by_name(before), _by_name(after)
    if old is None or new is None:
        yield path, before, after
        return
    for name in dict.fromkeys([*old, *new]):
        yield from differences(old.get(name), new.get(name), f"{path}[{name}]")


def covers(key: str, path: str) -> bool:
    """Return True if one of two paths is the other, or is within it."""
    longer, shorter = (key, path) if len(key) > len(path) else (path, key)
    return longer == shorter or (longer.startswith(shorter) and longer[len(shorter)] in ".[")


def shown(value: Any) -> str:
    """Return a short text for a value."""
    if isinstance(value, Mapping):
        value = next((value[each] for each in _NAMES if each in value), value)
    text = "-" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ..."


def _by_name(value: Any) -> dict[str, Any] | None:
    """Return the items of a list by their names; None for a value that is not a list of named items."""
    if not isinstance(value, list):
        return None
    named: dict[str, Any] = {}
    for item in value:
        name = (
            next((item[each] for each in _NAMES if each in item), None) if isinstance(item, Mapping) else None
        )
        if name is None:
            return None
        named[str(name)] = item
    return named
