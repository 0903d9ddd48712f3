"""Published and estimated creation times of resources, and the reasons for waits without a reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import yaml

from bench.subjects.critical_path import Resource
from training_cluster.paths import ROOT

TIMES = ROOT / "bench" / "creation_times.yaml"


@dataclass(frozen=True, kw_only=True)
class Times:
    """The content of creation_times.yaml."""

    seconds: Mapping[str, float]
    """Creation time of each resource type."""
    otherwise_s: float
    by_hand: Sequence[str]
    """Resource types, in the order in which they are created by hand."""
    reasons: Sequence[Mapping[str, str]]
    """`waits` and `for` (types, `*` for any) and `why`."""

    def seconds_of(self, type_: str) -> float:
        """Return the creation time of a resource type, in seconds."""
        return self.seconds.get(type_, self.otherwise_s)

    def why(self, waiting: Resource, other: Resource) -> str:
        """Return the reason of an edge that is not a reference; empty if there is none."""
        for each in self.reasons:
            if each["waits"] in {waiting.type, "*"} and each["for"] in {other.type, "*"}:
                return each["why"]
        return ""


def read_times() -> Times:
    """Read the table of creation times."""
    content = yaml.safe_load(TIMES.read_text(encoding="utf-8"))
    return Times(
        seconds={name: each["seconds"] for name, each in content["types"].items()},
        otherwise_s=content["otherwise_s"],
        by_hand=content["by_hand"],
        reasons=content["reasons"],
    )
