"""One place where we reach into ministack or moto: how it is found, checked and replaced."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Hook:
    """One attribute of theirs that we read or replace."""

    target: str
    """`module:attribute.path`"""
    parameters: tuple[str, ...] | None
    """Names of its parameters; None for what is no function."""
    why: str


class HookMovedError(Exception):
    """A hook is not where it was: the emulator's version changed."""


def _owner(hook: Hook) -> tuple[Any, str]:
    module, _, path = hook.target.partition(":")
    *parents, name = path.split(".")
    owner = importlib.import_module(module)
    for parent in parents:
        owner = getattr(owner, parent)
    return owner, name


def find(hook: Hook) -> Any:
    """Return what the hook names.

    Raises:
        HookMovedError: it is not there, or takes other parameters.
    """
    try:
        owner, name = _owner(hook)
        found = getattr(owner, name)
    except (ImportError, AttributeError) as error:
        raise HookMovedError(f"{hook.target} is gone ({error}); we need it: {hook.why}") from None
    if hook.parameters is not None:
        parameters = tuple(inspect.signature(inspect.unwrap(found)).parameters)
        if parameters != hook.parameters:
            raise HookMovedError(f"{hook.target} takes {parameters}, not {hook.parameters}; {hook.why}")
    return found


def replace(hook: Hook, make: Callable[[Any], Any]) -> None:
    """Put `make(original)` in the hook's place."""
    original = find(hook)
    owner, name = _owner(hook)
    was_static = isinstance(inspect.getattr_static(owner, name), staticmethod)
    replacement = make(original)
    setattr(owner, name, staticmethod(replacement) if was_static else replacement)
