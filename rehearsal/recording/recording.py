"""A recording of the provider's work: calls of AWS, and resource types of clusters' templates."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Recording:
    """The calls and resource types of all clusters."""

    calls: set[str] = field(default_factory=set)
    """`origin service operation parameter,parameter`; the origin is `library` or the provider's file."""
    types: dict[str, set[str]] = field(default_factory=dict)
    """The properties of each resource type in the clusters' templates, nested ones included."""
    made: set[str] = field(default_factory=set)
    """Names of the families and features that have templates."""
    refused: dict[str, str] = field(default_factory=dict)
    """The other families and features, with the reason why our flags refuse them."""

    def add(self, other: Recording) -> None:
        """Add the contents of another recording."""
        self.calls |= other.calls
        self.made |= other.made
        self.refused |= other.refused
        for name, properties in other.types.items():
            self.types.setdefault(name, set()).update(properties)

    def dump(self) -> str:
        """Render a sorted log: `call origin service operation parameters` and `type name properties`."""
        lines = {f"call {call}" for call in self.calls}
        lines |= {f"type {name} {','.join(sorted(found))}".strip() for name, found in self.types.items()}
        return "\n".join(sorted(lines)) + "\n"

    @classmethod
    def parse(cls, log: str) -> Recording:
        """Read a log that `dump` wrote; it has no families and features."""
        recording = cls()
        for kind, _, words in (line.partition(" ") for line in log.splitlines()):
            if kind == "call":
                recording.calls.add(words)
            else:
                name, _, properties = words.partition(" ")
                recording.types[name] = set(properties.split(",")) - {""}
        return recording
