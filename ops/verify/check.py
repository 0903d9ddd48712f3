"""A check of `trainctl verify`, and its verdict. No check changes anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from ops.account.clusters import Cluster
from ops.account.session import ClientOf
from ops.preflight.not_checked import not_checked

Verdict = Literal["held", "differs", "could not look"]
Look = Callable[[Cluster, ClientOf], tuple[bool, str]]
"""Returns if the claim holds, and the figure seen, without ids of the account."""


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

    def run(self, cluster: Cluster, client: ClientOf) -> Result:
        """Return the verdict; any error is its reason."""
        try:
            if self.only_on_aws and _is_rehearsal(client):
                return self._result("could not look", f"a rehearsal: {self.not_in_rehearsal}")
            is_held, seen = self.look(cluster, client)
        except Exception as error:  # reported in the result, and the other checks continue
            # AWS's words may have account ids, addresses and ARNs, so only the kind of the error is shown.
            reason = not_checked(self.id, error).mend
            asks = reason.startswith("ask for the permission")
            return self._result("could not look", reason if asks else type(error).__name__)
        return self._result("held" if is_held else "differs", seen)

    def _result(self, verdict: Verdict, seen: str) -> Result:
        return Result(
            id=self.id,
            claim=self.claim,
            verdict=verdict,
            seen=seen,
            expected=self.expected,
            not_in_rehearsal=self.not_in_rehearsal,
        )


def _is_rehearsal(client: ClientOf) -> bool:
    """Return True where a local AWS answers."""
    return urlsplit(client("ssm").meta.endpoint_url).hostname in {"localhost", "127.0.0.1"}
