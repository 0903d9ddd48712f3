"""Reads evidence and names the known causes in it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic_core import to_json

from ops.diagnose.bundle import write_bundle
from ops.diagnose.causes import load_causes
from ops.diagnose.matching import Matcher
from ops.diagnose.ranking import rank
from ops.diagnose.render import Diagnosis
from ops.diagnose.texts import Evidence


def diagnose_evidence(evidence: Evidence, *, cluster: str, about: str | None = None) -> Diagnosis:
    """Match every text with the known causes.

    Args:
        about: prefix of the names of the texts that the user asked about, such as job-42.
    """
    causes = load_causes()
    matcher, texts = Matcher(causes.values()), 0
    for text in evidence.texts():
        texts += 1
        matcher.read(text)
    found = tuple(rank(matcher.hits.values(), causes, cluster=cluster, about=about))
    return Diagnosis(
        causes=found,
        unknown=() if found else tuple(matcher.unknown.ranked()),
        texts=texts,
        lines=matcher.lines,
        unread=evidence.unread,
    )


def bundle_evidence(evidence: Evidence, found: Diagnosis, file: Path) -> None:
    """Write everything that was read, with the diagnosis, to a bundle. Raises UsageError."""
    write_bundle(file, evidence, to_json(replace(found, bundle=file), indent=2).decode())
