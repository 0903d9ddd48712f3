"""Hooks into ministack and moto, none of which is their public API: hooks.tsv, with the reason of each.

The module finds, checks and replaces their attributes. Both emulators are pinned exactly. A test compares
each hook with the table, so that an upgrade reports the changed ones instead of failing in a deploy.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Hook:
    """One attribute of an emulator that this package reads or replaces."""

    declared: str
    """`module:attribute.path`, of a function with the names of its parameters in parentheses."""

    @property
    def target(self) -> str:
        """The attribute, as `module:attribute.path`."""
        return self.declared.partition("(")[0]

    @property
    def parameters(self) -> tuple[str, ...] | None:
        """Names of its parameters; None if it is not a function."""
        _, is_function, names = self.declared.rstrip(")").partition("(")
        return tuple(filter(None, names.split(", "))) if is_function else None


_WHY = "hooks.tsv says what it is for"


def _read() -> dict[str, list[Hook]]:
    found = dict[str, list[Hook]]()
    for line in Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()[1:]:
        name, declared, _ = line.split("\t")
        found.setdefault(name, []).append(Hook(declared))
    return found


HOOKS = _read()
"""Hooks by name; two modules may have one attribute."""
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


def find(name: str) -> Any:
    """Return the attribute of a hook. Raises HookMovedError as `check` does."""
    [hook] = HOOKS[name]
    return check(hook)


def check(hook: Hook) -> Any:
    """Return the attribute that a hook declares.

    Raises:
        HookMovedError: it is missing, or takes other parameters.
    """
    try:
        owner, name = _owner(hook)
        found = getattr(owner, name)
    except (ImportError, AttributeError) as error:
        raise HookMovedError(f"{hook.target} is gone ({error}); {_WHY}") from None
    if hook.parameters is not None and hook not in _replaced:
        parameters = tuple(inspect.signature(inspect.unwrap(found)).parameters)
        if parameters != hook.parameters:
            raise HookMovedError(f"{hook.target} takes {parameters}, not {hook.parameters}; {_WHY}")
    return found


def replace(name: str, make: Callable[[Any], Any]) -> None:
    """Replace the attribute of a hook with `make(original)`."""
    for hook in HOOKS[name]:
        original = check(hook)
        owner, attribute = _owner(hook)
        was_static = isinstance(inspect.getattr_static(owner, attribute), staticmethod)
        replacement = make(original)
        _replaced.add(hook)
        setattr(owner, attribute, staticmethod(replacement) if was_static else replacement)
