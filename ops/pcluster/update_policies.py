"""Asks the real ParallelCluster library for its update policies: the states in which it takes a change."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ops.pcluster.dry_run import run_library

Config = Mapping[str, Any]
Policy = Literal["live", "drain", "stop", "never"]
"""State in which ParallelCluster takes a change: any; with drained nodes; with a stopped fleet; none."""


@dataclass(frozen=True, kw_only=True)
class Refused:
    """Keys of the cluster config whose change the library refuses, by the state of the fleet."""

    running: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()
    """Keys refused with a running fleet and QueueUpdateStrategy: DRAIN."""
    stopped: tuple[str, ...] = ()

    @property
    def policy(self) -> Policy:
        """Update policy of all the changes together."""
        return _policy(self.running, self.drained, self.stopped)

    def policy_of(self, key: str) -> Policy:
        """Return the update policy of one key."""
        return _policy(key in self.running, key in self.drained, key in self.stopped)

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that is refused in some state."""
        return tuple(dict.fromkeys([*self.running, *self.drained, *self.stopped]))


def _policy(running: object, drained: object, stopped: object) -> Policy:
    return "never" if stopped else "stop" if drained else "drain" if running else "live"


Judge = Callable[[Sequence[tuple[Config, Config]]], list[Refused]]
"""Returns the refused keys for pairs of cluster configs, before and after."""


def ask_library(pairs: Sequence[tuple[Config, Config]]) -> list[Refused]:
    """Ask the library in .venv-pcluster, which takes a few seconds and calls no AWS.

    Raises OpsError as run_library does.
    """
    asked = [{"before": before, "after": after} for before, after in pairs]
    answers = run_library("judge_updates.py", asked)
    return [Refused(**{state: tuple(keys) for state, keys in each.items()}) for each in answers]
