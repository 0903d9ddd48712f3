"""Our answer and the library's answer for each combination, and their comparison."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from ops.pcluster.dry_run import Message
from rehearsal.validation.cases import Case


class Verdict(Enum):
    """The comparison of both answers; the value is the word in the matrix."""

    BOTH_TAKE = "ok"
    BOTH_REFUSE = "no"
    WE_REFUSE_FOR_A_REASON = "ours"
    NOT_TRIED = "-"
    WE_REFUSE_ALONE = "OURS ALONE"
    LIBRARY_REFUSES_ALONE = "MISSED"

    @property
    def is_expected(self) -> bool:
        """True if our flags agree with the library, or have a known reason not to."""
        return self not in {Verdict.WE_REFUSE_ALONE, Verdict.LIBRARY_REFUSES_ALONE}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One case with both answers."""

    case: Case
    refusal: str | None
    """Our message; None if we accept it."""
    findings: tuple[Message, ...] | None
    """The library's findings; None if it was not asked."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """The rendered cluster config."""

    @property
    def errors(self) -> tuple[Message, ...]:
        """Findings for which the library refuses."""
        return tuple(each for each in self.findings or () if each.level == "ERROR")

    @property
    def verdict(self) -> Verdict:
        """The word for the two answers."""
        if self.findings is None:
            return Verdict.NOT_TRIED
        if self.refusal and not self.errors:
            known = self.case.why_we_alone_refuse
            return Verdict.WE_REFUSE_FOR_A_REASON if known else Verdict.WE_REFUSE_ALONE
        if self.refusal:
            return Verdict.BOTH_REFUSE
        return Verdict.LIBRARY_REFUSES_ALONE if self.errors else Verdict.BOTH_TAKE


def render_matrix(judged: Sequence[Judged]) -> list[str]:
    """Render a line a row: its columns, each with one word if all systems agree, otherwise one for each."""
    rows: dict[str, dict[str, list[str]]] = {}
    for each in judged:
        words = rows.setdefault(each.case.row, {}).setdefault(each.case.column, [])
        words.append(each.verdict.value)
    return [
        f"{row:<28}" + ", ".join(_cell(column, words) for column, words in columns.items())
        for row, columns in rows.items()
    ]


def _cell(column: str, words: list[str]) -> str:
    return f"{column} {words[0] if len(set(words)) == 1 else '/'.join(words)}".lstrip()


def render_unexpected(judged: Sequence[Judged]) -> list[str]:
    """Render every case with different answers, with both."""
    lines = []
    for each in judged:
        if not each.verdict.is_expected:
            said = [f"{finding.validator}: {finding.text}" for finding in each.errors] or ["accepts it"]
            lines += [
                f"{each.verdict.value}: {each.case.name}",
                f"  we:             {each.refusal or 'accept it'}",
                *(f"  ParallelCluster: {line}" for line in said),
            ]
    return lines


def render_reasons(judged: Sequence[Judged]) -> list[str]:
    """Render the reasons of cells that are neither ok nor no."""
    alone = dict.fromkeys(
        f"ours: {each.case.row}: {each.case.why_we_alone_refuse}"
        for each in judged
        if each.verdict is Verdict.WE_REFUSE_FOR_A_REASON
    )
    not_tried = [each.case.name for each in judged if each.verdict is Verdict.NOT_TRIED]
    return [*alone, *(f"-: {name}: not sold in the regions checked" for name in not_tried)]


def render_warnings(judged: Sequence[Judged]) -> list[str]:
    """Render the library's warnings about combinations that both accept, each kind once."""
    warned = [each for each in judged if each.verdict is Verdict.BOTH_TAKE]
    found = {(f.validator, f.level): (j.case, f.text) for j in warned for f in j.findings or ()}
    counts = Counter((f.validator, f.level) for j in warned for f in j.findings or ())
    return [
        f"{level} {validator} in {counts[validator, level]} cases, such as {case.name}: {message}"
        for (validator, level), (case, message) in sorted(found.items())
    ]
