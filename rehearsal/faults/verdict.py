"""What a case came to, as a row of the table and a line of the file of results."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rehearsal.workspace import PROJECT

_REASON_SHOWN = 90
# A result is worth nothing once one of these has changed.
_DECIDING = ("assets", "cluster_configs", "constructs", "ops", "rehearsal", "stacks", "locks", "cdk.json")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """How one case ended, and the deploy or destroy that followed it."""

    id: str
    request: str
    fired: bool
    """Whether the fault came about; a named case brings it about itself."""
    ended: str
    """Status of our stack after the fault."""
    next: str
    """Status of our stack after the next deploy or destroy, with nothing in its way."""
    stuck: list[str]
    orphans: list[str]
    lost: list[str]
    reasons: list[str]
    """What CloudFormation showed."""
    seconds: float

    @property
    def is_good(self) -> bool:
        """Whether nothing is stuck, left behind or lost."""
        return not (self.stuck or self.orphans or self.lost)

    def row(self, number: int, total: int) -> str:
        """A line of the table."""
        fired = self.ended if self.fired else f"{self.ended} (not reached)"
        then = "" if self.next == self.ended else f" -> {self.next}"
        line = f"{number:4}/{total} {self.id:62} {fired}{then}, {self.seconds:.1f} s"
        for word, found in (("STUCK", self.stuck), ("ORPHANS", self.orphans), ("LOST", self.lost)):
            if found:
                line += f"\n          {word}: {'; '.join(found)}"
        if self.reasons:
            line += f"\n          {self.reasons[0][:_REASON_SHOWN]}"
        return line


def fingerprint() -> str:
    """Changes with whatever decides how a case ends."""
    digest = hashlib.sha256()
    for name in _DECIDING:
        place = PROJECT / name
        files = sorted(path for path in place.rglob("*") if path.is_file()) if place.is_dir() else [place]
        for file in files:
            if "__pycache__" in file.parts:
                continue
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class Results:
    """What was tried already: one JSON object a line, so that an interrupted run goes on where it was."""

    def __init__(self, path: Path) -> None:
        self._path, self._fingerprint = path, fingerprint()

    def read(self) -> dict[str, Verdict]:
        """Verdicts by id, of the code as it is now."""
        return {verdict.id: verdict for verdict in self._lines()}

    def _lines(self) -> Iterator[Verdict]:
        if not self._path.exists():
            return
        for line in self._path.read_text().splitlines():
            try:
                written = json.loads(line)
            except ValueError:  # the last one, of a run that was cut short
                continue
            if written.pop("fingerprint") == self._fingerprint:
                yield Verdict(**written)

    def add(self, verdict: Verdict) -> None:
        """Write one down."""
        with self._path.open("a") as file:
            file.write(json.dumps({"fingerprint": self._fingerprint, **asdict(verdict)}) + "\n")


def summary(verdicts: Iterable[Verdict]) -> str:
    """The last line: figures of the cases whose fault came about, and of whatever went wrong without."""
    counted = [each for each in verdicts if each.fired or not each.is_good]
    stuck, orphans, lost = (
        sum(bool(getattr(each, what)) for each in counted) for what in ("stuck", "orphans", "lost")
    )
    return f"{len(counted)} cases: {stuck} stuck, {orphans} orphans, {lost} lost"
