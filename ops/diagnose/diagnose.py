"""Reads evidence and names the known causes in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from ops.diagnose.bundle import write_bundle
from ops.diagnose.causes import load_causes, with_deploy
from ops.diagnose.matching import Matcher
from ops.diagnose.ranking import rank
from ops.diagnose.render import Diagnosis
from ops.diagnose.texts import Evidence


def diagnose_evidence(
    evidence: Evidence, *, cluster: str, about: str | None = None, flags: Mapping[str, Any] | None = None
) -> Diagnosis:
    """Match every text with the known causes.

    Args:
        about: prefix of the names of the texts that the user asked about, such as job-42.
        flags: those of the cluster's last deploy; None if they are unknown.
    """
    causes = load_causes()
    matcher, texts = Matcher(causes.values()), 0
    for text in evidence.texts():
        texts += 1
        matcher.read(text)
    ranked = rank(matcher.hits.values(), causes, cluster=cluster, about=about)
    found = tuple(
        replace(each, mend=tuple(with_deploy(line, cluster, flags) for line in each.mend)) for each in ranked
    )
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
