"""What was seen of the provider's work: calls to AWS, and resource types of clusters' templates."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Recording:
    """What was seen, over all clusters."""

    calls: set[str] = field(default_factory=set)
    """`origin service operation parameter,parameter`; the origin is `library` or the provider's file."""
    types: dict[str, set[str]] = field(default_factory=dict)
    """The properties of each resource type in the clusters' templates, nested ones included."""
    made: set[str] = field(default_factory=set)
    """The families and features, by name, for which there are templates."""
    refused: dict[str, str] = field(default_factory=dict)
    """The others, and why our flags refuse them."""

    def add(self, other: Recording) -> None:
        """Take in what was seen elsewhere."""
        self.calls |= other.calls
        self.made |= other.made
        self.refused |= other.refused
        for name, properties in other.types.items():
            self.types.setdefault(name, set()).update(properties)

    def dump(self) -> str:
        """As a log, sorted: `call origin service operation parameters` and `type name properties`."""
        lines = {f"call {call}" for call in self.calls}
        lines |= {f"type {name} {','.join(sorted(found))}".strip() for name, found in self.types.items()}
        return "\n".join(sorted(lines)) + "\n"

    @classmethod
    def parse(cls, log: str) -> Recording:
        """What `dump` wrote; but for the cases."""
        recording = cls()
        for kind, _, words in (line.partition(" ") for line in log.splitlines()):
            if kind == "call":
                recording.calls.add(words)
            else:
                name, _, properties = words.partition(" ")
                recording.types[name] = set(properties.split(",")) - {""}
        return recording
