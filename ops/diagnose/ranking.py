"""Ranks the causes that were found: the one to fix first comes first."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ops.diagnose.causes import Cause
from ops.diagnose.matching import Hit
from ops.diagnose.unknown import EvidenceLine
from ops.masking import mask

# Weight up to which a line is usually a consequence of another failure, or a state and no failure.
_CONSEQUENCE = 60
# Each further line that shows the cause adds to its score; at most three are counted.
_ANOTHER, _MOST_OTHERS = 2, 3


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A cause that was found in the texts."""

    id: str
    title: str
    score: int
    is_consequence: bool
    """True if the lines that show this cause usually follow from another failure."""
    evidence: tuple[EvidenceLine, ...]
    """Lines that show the cause, the most conclusive first."""
    mend: tuple[str, ...]
    why: str
    source: str
    follows_from: tuple[str, ...]
    """Titles of other causes that were found and that explain this one."""

    def is_of(self, about: str) -> bool:
        """Return True if a line of a text whose name begins with `about` shows the cause."""
        return any(line.file.startswith(about) for line in self.evidence)


def rank(
    hits: Iterable[Hit], causes: Mapping[str, Cause], *, cluster: str, about: str | None = None
) -> list[Finding]:
    """Sort the causes that were found: the likeliest first, consequences of others last.

    What our own scripts said as they ended a job comes before what PyTorch, NCCL or Slurm said of it.

    Args:
        about: prefix of the names of the texts that the user asked about: their causes come before those of
            other texts, which may be of another day.
    """
    by_cause: dict[str, list[Hit]] = {}
    for hit in hits:
        by_cause.setdefault(hit.cause, []).append(hit)
    findings = [_finding(causes[id_], found, by_cause, causes, cluster) for id_, found in by_cause.items()]

    def key(each: Finding) -> tuple[bool, bool, bool, int]:
        is_about = about is not None and each.is_of(about)
        is_own_sentence = any(hit.is_own_sentence for hit in by_cause[each.id])
        return bool(each.follows_from), not is_about, not is_own_sentence, -each.score

    return sorted(findings, key=key)


def _finding(
    cause: Cause, hits: list[Hit], found: Mapping[str, object], causes: Mapping[str, Cause], cluster: str
) -> Finding:
    weighty = sorted(hits, key=lambda hit: (not hit.is_own_sentence, -hit.pattern.weight))
    lines: dict[tuple[str, int], Hit] = {}
    for hit in weighty:
        lines.setdefault((hit.file, hit.line), hit)
    groups = {"cluster": cluster}
    for hit in reversed(weighty):
        groups |= hit.groups
    return Finding(
        id=cause.id,
        title=cause.title,
        score=max(hit.pattern.weight for hit in hits) + _ANOTHER * min(len(lines) - 1, _MOST_OTHERS),
        is_consequence=all(hit.pattern.weight <= _CONSEQUENCE and not hit.is_own_sentence for hit in hits),
        evidence=tuple(
            EvidenceLine(file=hit.file, line=hit.line, text=mask(hit.text), count=hit.count)
            for hit in lines.values()
        ),
        mend=tuple(mask(line) for line in cause.mend_with(groups)),
        why=cause.why,
        source=cause.source,
        follows_from=tuple(causes[id_].title for id_ in found if cause.id in causes[id_].explains),
    )
