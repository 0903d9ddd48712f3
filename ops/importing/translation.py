"""What an import has found: flags, queues, overrides, and what is lost."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from training_cluster.pcluster.config_diff import shown
from training_cluster.queues.queue import OFFICIAL

Config = Mapping[str, Any]
"""Cluster config with ParallelCluster's keys."""


@dataclass(frozen=True, kw_only=True)
class Lost:
    """A key that cannot be carried over."""

    path: str
    value: Any
    reason: str

    def text(self) -> str:
        """Return a line for people."""
        return f"{self.path}: {shown(self.value)}: {self.reason}" if self.path else self.reason


@dataclass(kw_only=True)
class Translation:
    """Flags, queues and overrides that make the same cluster."""

    flags: dict[str, str] = field(default_factory=dict)
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)
    directory: dict[str, Any] = field(default_factory=dict)
    """Keys of the file of the directory, where users come from one."""
    lost: list[Lost] = field(default_factory=list)
    replaced: list[str] = field(default_factory=list)
    """Sentences about keys whose place another key of the same effect takes, or a successor."""
    fill: list[str] = field(default_factory=list)
    """Flags that the user has to complete."""
    image: str = OFFICIAL
    """Image of all nodes, by Image.CustomAmi."""
    mounted: set[str] = field(default_factory=set)
    """Types of the storage that is mounted where ours is."""
    carried: set[str] = field(default_factory=set)
    """Paths of keys that flags or queues carry, or that are lost."""

    def carry(self, *paths: str) -> None:
        """Mark keys as carried by a flag or a queue, with all below them."""
        self.carried.update(paths)

    def lose(self, path: str, value: Any, reason: str) -> None:
        """Mark a key as lost."""
        self.lost.append(Lost(path=path, value=value, reason=reason))

    def lose_others(self, keys: Mapping[str, Any], path: str, kept: Collection[str], reason: str) -> None:
        """Mark the keys of a mapping as lost that are not kept."""
        for key, value in keys.items():
            if key not in kept:
                self.lose(f"{path}.{key}", value, reason)


def nodes_of(config: Config) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield head node, queues and pools of login nodes, with their paths."""
    yield "HeadNode", config["HeadNode"]
    for queue in config["Scheduling"].get("SlurmQueues", []):
        yield f"Scheduling.SlurmQueues[{queue.get('Name')}]", queue
    for pool in config.get("LoginNodes", {}).get("Pools", []):
        yield f"LoginNodes.Pools[{pool.get('Name')}]", pool
