"""A diagnosis as text for people."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ops.account.region_and_profile import with_account
from ops.diagnose.ranking import Finding
from ops.diagnose.texts import State
from ops.diagnose.unknown import EvidenceLine

_SHOWN_EVIDENCE, _SHOWN_CHARS = 3, 500


@dataclass(frozen=True, kw_only=True)
class Diagnosis:
    """The causes that were found, and the amount of text that was read."""

    state: State
    """State that the account and Slurm report."""
    causes: tuple[Finding, ...]
    """Causes that were found, the likeliest first and consequences of others last."""
    unknown: tuple[EvidenceLine, ...]
    """Lines that look most like the failure and that no cause explains; they come before the causes."""
    earlier: tuple[Finding, ...]
    """Causes that lines from before the last success show, or lines of a job that has completed."""
    earlier_unknown: tuple[EvidenceLine, ...]
    """Among these lines those that no cause explains; they come before those causes."""
    texts: int
    lines: int
    unread: dict[str, str]
    """Sources that could not be read -> the reason."""
    bundle: Path | None = None
    """Path of the bundle, if one was requested."""

    @property
    def is_answered(self) -> bool:
        """True if a known cause comes first, or if there is nothing to diagnose."""
        return self.state.is_good or bool(self.causes and not self.unknown)


def render(diagnosis: Diagnosis) -> Iterator[str]:
    """Yield the lines for a terminal."""
    read = f"{diagnosis.lines:,} lines of {diagnosis.texts} log(s)"
    yield from map(with_account, diagnosis.state.sentences)
    if diagnosis.state.sentences and (diagnosis.causes or diagnosis.unknown):
        yield ""
    if diagnosis.causes:
        yield from _render_causes(diagnosis.unknown, diagnosis.causes)
    elif diagnosis.state.is_good and not diagnosis.unknown:
        yield "Nothing to diagnose in what could be read." if diagnosis.unread else "Nothing to diagnose."
    else:
        yield f"No known cause found in {read}."
        yield from _render_unknown(diagnosis.unknown)
    if diagnosis.earlier or diagnosis.earlier_unknown:
        yield ""
        yield diagnosis.state.earlier
        if diagnosis.earlier_unknown:
            yield from _render_unexplained(diagnosis.earlier_unknown)
        for number, each in enumerate(diagnosis.earlier, 2 if diagnosis.earlier_unknown else 1):
            yield from _render_other(number, each)
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


def _render_causes(unknown: Sequence[EvidenceLine], causes: Sequence[Finding]) -> Iterator[str]:
    others = causes
    if unknown:
        yield from _render_unexplained(unknown)
    else:
        first, *others = causes
        yield from _render_first(first)
    if others:
        yield ""
        yield "Also found, less likely or a consequence:"
        for number, each in enumerate(others, 2):
            yield from _render_other(number, each)


def _render_unexplained(lines: Sequence[EvidenceLine]) -> Iterator[str]:
    yield "1. An error that no rule explains:" if len(lines) == 1 else "1. Errors that no rule explains:"
    for line in lines:
        yield from _render_line(line)


def _render_first(cause: Finding) -> Iterator[str]:
    yield f"1. {cause.title}"
    for each in cause.evidence[:_SHOWN_EVIDENCE]:
        yield from _render_line(each)
    first, *rest = map(with_account, cause.mend)
    yield f"   fix:    {first}"
    yield from (f"           {line}" for line in rest)
    yield f"   why:    {cause.why}"
    yield f"   source: {cause.source}"


def _render_other(number: int, cause: Finding) -> Iterator[str]:
    follows = f" (follows from: {'; '.join(cause.follows_from)})" if cause.follows_from else ""
    yield f"{number}. {cause.title}{follows}"
    yield from _render_line(cause.evidence[0])
    if not cause.follows_from:
        yield f"   fix:    {with_account(cause.mend[0])}"


def _render_unknown(lines: Sequence[EvidenceLine]) -> Iterator[str]:
    if lines:
        yield "Lines that look like a failure, the likeliest first:"
    for number, each in enumerate(lines, 1):
        yield f"{number}. {each.file}:{each.line}{_times(each.count)}"
        yield f"     {_short(each.text)}"


def _render_line(line: EvidenceLine) -> Iterator[str]:
    yield f"   {line.file}:{line.line}{_times(line.count)}"
    yield f"     {_short(line.text)}"


def _times(count: int) -> str:
    return f" and {count - 1:,} more like it" if count > 1 else ""


def _short(text: str) -> str:
    """Cut a line, and replace control characters, which the terminal would obey."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    return plain if len(plain) <= _SHOWN_CHARS else f"{plain[:_SHOWN_CHARS]} ..."
