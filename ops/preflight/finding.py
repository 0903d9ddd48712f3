"""The result of a check."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A line of the report of preflight."""

    check: str
    found: str
    verdict: Verdict = "ok"
    """warning: it works, but slower or more expensively; problem: the deploy or the cluster would fail."""
    mend: str = ""
    """Command or flag to type."""

    def __post_init__(self) -> None:
        """Refuse a missing part of AWS's answer before it is printed."""
        if not isinstance(self.found, str):
            raise TypeError(f"{self.check}: the answer lacks the value to report")


def finding(check: str, found: str, *, good: bool, mend: str, otherwise: Verdict = "problem") -> Finding:
    """Return a finding that is ok, or has another verdict and the command to type."""
    return Finding(check=check, found=found, verdict="ok" if good else otherwise, mend="" if good else mend)
