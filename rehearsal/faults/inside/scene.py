"""Runs in .venv-pcluster: what a named case is, what it acts on, and what it expects to read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cloudformation import Stack
from injection import Wire

Config = dict[str, Any]
# CloudFormation's limit for the whole answer of a custom resource.
_MAX_REASON_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class Scene:
    """What a named case acts on."""

    stack: Stack
    wire: Wire
    config: Config
    """As it is deployed, or is to be created."""
    wanted: Config
    """Config of the update; it needs a stopped fleet."""


@dataclass(frozen=True, kw_only=True)
class Named:
    """One case."""

    request: str
    """Create, Update or Delete: decides what stands before, and what comes next."""
    act: Callable[[Scene], None]
    changes: bool = False
    """True where the next deploy asks for `wanted` instead of `config`."""


def says(scene: Scene, *words: str) -> str:
    """Return the reason that CloudFormation shows. Raises AssertionError: it lacks a word, or is too long."""
    reason = scene.stack.reasons[-1] if scene.stack.reasons else ""
    if not all(word in reason for word in words) or len(reason.encode()) > _MAX_REASON_BYTES:
        raise AssertionError(f"{words} are not in: {scene.stack.status}: {scene.stack.reasons}")
    return reason
