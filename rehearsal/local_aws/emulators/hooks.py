"""Hooks into ministack and moto: the module finds, checks and replaces their attributes.

Both emulators are pinned exactly. A test compares each hook with its description, so that an upgrade reports
the changed ones instead of failing in a deploy.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Hook:
    """One attribute of an emulator that this package reads or replaces."""

    target: str
    """Attribute, as `module:attribute.path`."""
    parameters: tuple[str, ...] | None
    """Names of its parameters; None if it is not a function."""
    why: str


_replaced: set[Hook] = set()
"""Hooks that fitted, and whose attribute is ours now."""


class HookMovedError(Exception):
    """A hook that is missing or different because the emulator's version changed."""


def _owner(hook: Hook) -> tuple[Any, str]:
    module, _, path = hook.target.partition(":")
    *parents, name = path.split(".")
    owner = importlib.import_module(module)
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def find(hook: Hook) -> Any:
    """Return the attribute that the hook names.

    Raises:
        HookMovedError: it is missing, or takes other parameters.
    """
    try:
        owner, name = _owner(hook)
        found = getattr(owner, name)
    except (ImportError, AttributeError) as error:
        raise HookMovedError(f"{hook.target} is gone ({error}); we need it: {hook.why}") from None
    if hook.parameters is not None and hook not in _replaced:
        parameters = tuple(inspect.signature(inspect.unwrap(found)).parameters)
        if parameters != hook.parameters:
            raise HookMovedError(f"{hook.target} takes {parameters}, not {hook.parameters}; {hook.why}")
    return found


def replace(hook: Hook, make: Callable[[Any], Any]) -> None:
    """Replace the hook's attribute with `make(original)`."""
    original = find(hook)
    owner, name = _owner(hook)
    was_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    replacement = make(original)
    _replaced.add(hook)
    setattr(owner, name, staticmethod(replacement) if was_static else replacement)
