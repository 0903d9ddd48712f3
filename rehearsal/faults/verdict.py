"""The result of a case, as a row of the table and a line of the file of results."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rehearsal.faults.cases import Case
from training_cluster.paths import ROOT

_REASON_SHOWN = 90
_RAISED = "RAISED"
"""End of a case that raised an error."""
# A result is valid only as long as none of these changes.
_DECIDING = ("assets", "cluster_configs", "constructs", "ops", "rehearsal", "stacks", "locks", "cdk.json")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The end of one case, and of the deploy or destroy that followed it."""

    id: str
    request: str = "stacks"
    fired: bool = True
    """True if the fault occurred; a named case causes it itself."""
    ended: str
    """Status of our stack after the fault."""
    next: str
    """Status of our stack after the next deploy or destroy, without a fault."""
    stuck: list[str]
    orphans: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    """Reasons that CloudFormation reported."""
    seconds: float = 0.0
    denied: list[str] = field(default_factory=list)
    """Calls of the deployed functions for which their roles lack a permission. Injected denials are not
    among them, since they occur before permissions are checked."""

    @property
    def is_good(self) -> bool:
        """True if nothing is stuck, left behind or lost, and no call was denied."""
        return not (self.stuck or self.orphans or self.lost or self.denied)

    def row(self, number: int, total: int) -> str:
        """Format the verdict as a line of the table."""
        fired = self.ended if self.fired else f"{self.ended} (not reached)"
        then = "" if self.next == self.ended else f" -> {self.next}"
        line = f"{number:4}/{total} {self.id:62} {fired}{then}, {self.seconds:.1f} s"
        for word, found in (
            ("STUCK", self.stuck),
            ("ORPHANS", self.orphans),
            ("LOST", self.lost),
            ("DENIED", self.denied),
        ):
            if found:
                line += f"\n          {word}: {'; '.join(found)}"
        if self.reasons:
            line += f"\n          {self.reasons[0][:_REASON_SHOWN]}"
        return line


def message(error: Exception) -> str:
    """Return the text of an error that ended a case, with its type unless the case raised it on purpose."""
    return str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"


def raised(case: Case, error: Exception) -> Verdict:
    """Return the verdict of a case that ended with an error."""
    request = str(case.question.get("request", "stacks"))
    return Verdict(id=case.id, request=request, ended=_RAISED, next=_RAISED, stuck=[message(error)])


def fingerprint() -> str:
    """Return a hash of all files that determine how a case ends."""
    digest = hashlib.sha256()
    for name in _DECIDING:
        place = ROOT / name
        files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        for file in files:
            if "__pycache__" in file.parts:
                continue
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class Results:
    """The file of results: one JSON object per line, so that an interrupted run can be resumed."""

    def __init__(self, path: Path) -> None:
        self._path, self._fingerprint = path, fingerprint()

    def read(self) -> dict[str, Verdict]:
        """Read the verdicts of the present code, by id. Cases that raised, also by Ctrl-C, have none."""
        return {verdict.id: verdict for verdict in self._lines() if verdict.ended != _RAISED}

    def _lines(self) -> Iterator[Verdict]:
        if not self._path.exists():
            return
        for line in self._path.read_text().splitlines():
            try:
                written = json.loads(line)
            except ValueError:  # the last line of an interrupted run
                continue
            if written.pop("fingerprint") == self._fingerprint:
                yield Verdict(**written)

    def add(self, verdict: Verdict) -> None:
        """Append a verdict to the file."""
        with self._path.open("a") as file:
            file.write(json.dumps({"fingerprint": self._fingerprint, **asdict(verdict)}) + "\n")


def summary(verdicts: Iterable[Verdict]) -> str:
    """Count the cases whose fault occurred, and those that failed without it, in one line."""
    counted = [each for each in verdicts if each.fired or not each.is_good]
    stuck, orphans, lost = (
        sum(bool(getattr(each, what)) for each in counted) for what in ("stuck", "orphans", "lost")
    )
    denied = sum(bool(each.denied) for each in counted)
    without = f", {denied} with denied calls" if denied else ""
    return f"{len(counted)} cases: {stuck} stuck, {orphans} orphans, {lost} lost{without}"
