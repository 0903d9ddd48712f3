"""A named case, its scene, and the reasons that it expects; runs in .venv-pcluster."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cloudformation import Stack
from injection import Wire

Config = dict[str, Any]
# CloudFormation's limit for the whole answer of a custom resource.
_MAX_REASON_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Scene:
    """The stack, calls and configs that a named case uses."""

    stack: Stack
    wire: Wire
    config: Config
    """Config that is deployed or that the case deploys."""
    wanted: Config
    """Config of the update, which requires a stopped fleet."""

    def do(self, request: str) -> None:
        """Deploy or destroy the stack, without a look at the result."""
        if request == "Delete":
            self.stack.destroy()
        else:
            self.stack.deploy(self.wanted if request == "Update" else self.config)

    def check(self, fits: bool) -> None:
        """Raise AssertionError, with the stack's state, for a result that does not fit."""
        if not fits:
            raise AssertionError(f"{self.stack.status}: {self.stack.reasons}")


@dataclass(frozen=True, kw_only=True)
class Named:
    """One case with its request."""

    request: str
    """Create, Update or Delete: determines the state before the case, and the next request."""
    act: Callable[[Scene], None]
    changes: bool = False
    """True if the next deploy asks for `wanted` instead of `config`."""


def create(act: Callable[[Scene], None]) -> Named:
    """Return a case of a create."""
    return Named(request="Create", act=act)


def update(act: Callable[[Scene], None]) -> Named:
    """Return a case of an update to `wanted`."""
    return Named(request="Update", act=act, changes=True)


def delete(act: Callable[[Scene], None]) -> Named:
    """Return a case of a delete."""
    return Named(request="Delete", act=act)


def says(scene: Scene, *words: str) -> str:
    """Return the reason that CloudFormation shows. Raises AssertionError: it lacks a word, or is too long."""
    reason = scene.stack.reasons[-1] if scene.stack.reasons else ""
    if not all(word in reason for word in words) or len(reason.encode()) > _MAX_REASON_BYTES:
        raise AssertionError(f"{words} are not in: {scene.stack.status}: {scene.stack.reasons}")
    return reason


@contextmanager
def booting(behaviour: str) -> Iterator[None]:
    """Let head nodes boot with this behaviour in the block."""
    file = Path(os.environ["LOCAL_AWS_HEAD_NODE"])
    file.write_text(behaviour)
    try:
        yield
    finally:
        file.unlink()
