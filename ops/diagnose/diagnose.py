"""Reads evidence and names the known causes in it."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pydantic_core import to_json

from ops.account.deploy_command import deploy_command
from ops.diagnose.bundle import write_bundle
from ops.diagnose.causes import load_causes
from ops.diagnose.matching import Matcher
from ops.diagnose.ranking import Finding, rank
from ops.diagnose.render import Diagnosis
from ops.diagnose.texts import Evidence
from ops.diagnose.unknown import LEAST, LOUD, EvidenceLine


def diagnose_evidence(evidence: Evidence, *, cluster: str, about: str | None = None) -> Diagnosis:
    """Match every text with the known causes.

    Args:
        about: prefix of the names of the texts that the user asked about, such as job-42.
    """
    causes, deploy = load_causes(), deploy_command(cluster)
    matcher, earlier, texts = Matcher(causes.values()), Matcher(causes.values()), 0
    for text in evidence.texts():
        texts += 1
        (earlier if text.is_earlier else matcher).read(text)

    def ranked(of: Matcher) -> list[Finding]:
        found = rank(of.hits.values(), causes, cluster=cluster, about=about)
        return [
            replace(each, mend=tuple(line.replace("{deploy}", deploy) for line in each.mend))
            for each in found
        ]

    found = ranked(matcher)
    found_earlier = ranked(earlier)
    unknown = _unexplained(matcher, found, about, least=LOUD if evidence.state.is_good else LEAST)
    has_nothing = not (evidence.state.is_good or found or unknown)
    return Diagnosis(
        state=evidence.state,
        causes=tuple(found),
        unknown=unknown,
        earlier=tuple(found_earlier),
        earlier_unknown=_unexplained(earlier, found_earlier, about, least=LEAST if has_nothing else LOUD),
        texts=texts,
        lines=matcher.lines + earlier.lines,
        unread=evidence.unread,
    )


def _unexplained(
    matcher: Matcher, found: Sequence[Finding], about: str | None, *, least: int
) -> tuple[EvidenceLine, ...]:
    """Return the unexplained lines to show: before weak causes, those that show how a program ended.

    Args:
        least: weight from which on a line is shown if there is no cause.
    """
    if not found:
        return tuple(matcher.unknown.ranked(least=least))
    is_elsewhere = about is not None and not found[0].is_of(about)
    if not (found[0].is_consequence or is_elsewhere):
        return ()
    return tuple(matcher.unknown.ranked(least=LOUD, of=about or ""))


def bundle_evidence(evidence: Evidence, found: Diagnosis, file: Path) -> None:
    """Write everything that was read, with the diagnosis, to a bundle. Raises UsageError."""
    write_bundle(file, evidence, to_json(replace(found, bundle=file), indent=2).decode())
