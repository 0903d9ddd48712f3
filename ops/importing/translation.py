"""Result of an import: flags, queues, overrides, and notes about differences."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from training_cluster.pcluster.config_diff import shown

Config = Mapping[str, Any]
"""Cluster config with ParallelCluster's keys."""
Kind = Literal["lost", "wider", "narrower", "replaced", "moved"]
"""How the result differs: a value is gone, more or less is allowed, another value, another place."""


class Note(NamedTuple):
    """A sentence about a key of the imported config that the result has otherwise."""

    kind: Kind
    path: str
    words: str


@dataclass(kw_only=True)
class Translation:
    """Flags and queues that make the same cluster; overrides follow from what they render."""

    flags: dict[str, str] = field(default_factory=dict)
    queues: dict[str, dict[str, Any]] = field(default_factory=dict)
    directory: dict[str, Any] = field(default_factory=dict)
    """Keys of the file of the directory, where users come from one."""
    notes: list[Note] = field(default_factory=list)
    fill: list[str] = field(default_factory=list)
    """Values that the user has to complete."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Paths of named items in the imported config, by their paths here."""

    def note(self, kind: Kind, path: str, words: str) -> None:
        """Note a difference."""
        self.notes.append(Note(kind, path, words))

    def lose(self, path: str, value: Any, reason: str) -> None:
        """Note a value that is lost."""
        self.note("lost", path, f"{shown(value)}: {reason}")

    def is_lost(self, path: str) -> bool:
        """Return True for a key that is noted as lost, or is within such a key."""
        lost = [each.path for each in self.notes if each.kind == "lost" and each.path]
        return any(path == each or path.startswith((f"{each}.", f"{each}[")) for each in lost)

    def said(self, kind: Kind) -> tuple[str, ...]:
        """Return the sentences of a kind, each once, with the names of the imported config."""
        found = (each for each in self.notes if each.kind == kind)
        texts = (f"{each.path}: {each.words}" if each.path else each.words for each in found)
        return tuple(dict.fromkeys(self.as_named(each) for each in texts))

    def as_named(self, text: str) -> str:
        """Return a sentence that begins with a path, with the imported config's names."""
        here = next((each for each in self.renamed if text.startswith(each)), None)
        return self.renamed[here] + text.removeprefix(here) if here else text
