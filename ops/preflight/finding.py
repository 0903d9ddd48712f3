"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report."""

    check: str
    found: str
    verdict: Verdict = "ok"
    """warning: it works, worse or dearer; problem: the deploy would fail, or the cluster not work."""
    mend: str = ""
    """What to type."""

    def __post_init__(self) -> None:
        """Refuse what AWS left out of an answer, before it is printed."""
        if not isinstance(self.found, str):
            raise TypeError(f"{self.check}: nothing was found, not even a word")


def judged(check: str, found: str, *, good: bool, mend: str, else_: Verdict = "problem") -> Finding:
    """Say ok, or what to type."""
    return Finding(check=check, found=found, verdict="ok" if good else else_, mend="" if good else mend)
