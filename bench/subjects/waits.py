"""Waits on AWS that others published or that are estimated: the parts of an update, and of a job's start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import yaml

from training_cluster.paths import ROOT

WAITS = ROOT / "bench" / "waits.yaml"
Kind = Literal["flag", "script", "node"]


@dataclass(frozen=True, kw_only=True)
class Part:
    """One part of a wait, one after the other."""

    name: str
    seconds: float
    whose: str
    """The program that takes the time; `ours` for this project's."""
    source: str
    of: tuple[Kind, ...]
    """The waits that it is a part of."""


def read_parts(kind: Kind, path: Path = WAITS) -> list[Part]:
    """Read the parts of one wait, in their order."""
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    parts = [Part(**{**each, "of": tuple(each["of"])}) for each in content]
    return [each for each in parts if kind in each.of]


def total_s(parts: Sequence[Part], *, whose: str | None = None) -> float:
    """Return the seconds of all parts, or of those that one program takes."""
    return sum(each.seconds for each in parts if whose in (None, each.whose))


def chain(parts: Sequence[Part]) -> str:
    """Return the parts with their seconds, and whose they are, as one sentence's text."""
    return ", ".join(f"{each.name} {each.seconds:g} s ({each.whose})" for each in parts)
