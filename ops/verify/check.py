"""A check of `trainctl verify`, and its verdict."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from ops.verify.hiding import hide_ids, reason_without_ids
from ops.verify.scene import Scene

Verdict = Literal["held", "differs", "could not look"]
Look = Callable[[Scene], tuple[bool, str]]
"""Returns if the claim holds, and the figure seen. An UnseenError, or any other error: it cannot look."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """The verdict of a check."""

    id: str
    claim: str
    verdict: Verdict
    seen: str
    expected: str
    not_in_rehearsal: str
    """Part of the claim that a rehearsal cannot show."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """A claim about a deployed cluster, and the function that looks."""

    id: str
    claim: str
    expected: str
    not_in_rehearsal: str
    look: Look
    only_on_aws: bool = False
    """True where a rehearsal has nothing to look at."""

    def run(self, scene: Scene) -> Result:
        """Return the verdict; any error is its reason."""
        try:
            if self.only_on_aws and scene.is_rehearsal:
                return self.result("could not look", "this is a rehearsal")
            is_held, seen = self.look(scene)
        except Exception as error:  # reported in the result, and the other checks continue
            return self.result("could not look", reason_without_ids(self.id, error))
        return self.result("held" if is_held else "differs", seen)

    def result(self, verdict: Verdict, seen: str) -> Result:
        """Return a verdict without what identifies the account."""
        return Result(
            id=self.id,
            claim=self.claim,
            verdict=verdict,
            seen=hide_ids(seen),
            expected=self.expected,
            not_in_rehearsal=self.not_in_rehearsal,
        )
