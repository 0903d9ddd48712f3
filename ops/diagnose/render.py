"""A diagnosis as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.account.region_and_profile import with_account
from ops.diagnose.evidence import Evidence
from ops.diagnose.ranking import Finding

_SHOWN_EVIDENCE, _SHOWN_CHARS = 3, 500


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The causes that were found, and the amount of text that was read."""

    causes: tuple[Finding, ...]
    """Causes that were found, the likeliest first and consequences of others last."""
    unknown: tuple[Evidence, ...]
    """If no cause was found: the lines that look most like a failure, that first."""
    texts: int
    lines: int
    unread: dict[str, str]
    """Sources that could not be read -> the reason."""
    bundle: Path | None = None
    """Path of the bundle, if one was requested."""


def render(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines for a terminal."""
    read = f"{diagnosis.lines:,} lines of {diagnosis.texts} log(s)"
    if diagnosis.causes:
        first, *others = diagnosis.causes
        yield from _render_first(first)
        if others:
            yield ""
            yield "Also found, less likely or a consequence:"
            for number, each in enumerate(others, 2):
                yield from _render_other(number, each)
    else:
        yield f"No known cause found in {read}."
        yield from _render_unknown(diagnosis.unknown)
    if diagnosis.unread:
        yield ""
        yield "Could not be read:"
        yield from (f"  {name}: {why}" for name, why in diagnosis.unread.items())
    if diagnosis.causes:
        yield ""
        yield f"Read: {read}."


def render_bundle(file: Path) -> str:
    """Return the line that names a bundle that was written."""
    return f"Bundle: {file} (keys and tokens masked; look through it before you send it)"


def _render_first(cause: Finding) -> Iterator[str]:
    yield f"1. {cause.title}"
    for each in cause.evidence[:_SHOWN_EVIDENCE]:
        yield f"   {each.file}:{each.line}{_times(each.count)}"
        yield f"     {_short(each.text)}"
    first, *rest = map(with_account, cause.mend)
    yield f"   fix:    {first}"
    yield from (f"           {line}" for line in rest)
    yield f"   why:    {cause.why}"
    yield f"   source: {cause.source}"


def _render_other(number: int, cause: Finding) -> Iterator[str]:
    follows = f" (follows from: {'; '.join(cause.follows_from)})" if cause.follows_from else ""
    evidence = cause.evidence[0]
    yield f"{number}. {cause.title}{follows}"
    yield f"   {evidence.file}:{evidence.line}{_times(evidence.count)}"
    yield f"     {_short(evidence.text)}"
    if not cause.follows_from:
        yield f"   fix:    {with_account(cause.mend[0])}"


def _render_unknown(lines: Sequence[Evidence]) -> Iterator[str]:
    if lines:
        yield "Lines that look like a failure, the likeliest first:"
    for number, each in enumerate(lines, 1):
        yield f"{number}. {each.file}:{each.line}{_times(each.count)}"
        yield f"     {_short(each.text)}"


def _times(count: int) -> str:
    return f" and {count - 1:,} more like it" if count > 1 else ""


def _short(text: str) -> str:
    """Cut a line, and replace control characters, which the terminal would obey."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= _SHOWN_CHARS else f"{plain[:_SHOWN_CHARS]} ..."
