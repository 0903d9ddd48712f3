"""The verdict of two answers: a difference between our flags and the library fails `make validate`."""

import io

import pytest
from rich.console import Console

from ops.pcluster.dry_run import Message
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.validation.cases import Case
from rehearsal.validation.run import report
from rehearsal.validation.verdicts import Judged, Verdict

ERROR = Message(level="ERROR", validator="SomeValidator", text="no, never")
WARNING = Message(level="WARNING", validator="SomeValidator", text="are you sure?")


def _judged(*findings: Message, refusal: str | None = None, row: str = "p4d", asked: bool = True) -> Judged:
    case = Case(row=row, column="spot", os_name="ubuntu2204", flags={})
    return Judged(case=case, refusal=refusal, findings=findings if asked else None)


def test_two_answers_are_one_verdict() -> None:
    for judged, verdict in (
        (_judged(), Verdict.BOTH_TAKE),
        (_judged(WARNING), Verdict.BOTH_TAKE),
        (_judged(ERROR, refusal="no"), Verdict.BOTH_REFUSE),
        (_judged(ERROR, WARNING), Verdict.LIBRARY_REFUSES_ALONE),
        (_judged(WARNING, refusal="no"), Verdict.WE_REFUSE_ALONE),
        (_judged(refusal="no", row="block, few run"), Verdict.WE_REFUSE_FOR_A_REASON),
        (_judged(asked=False), Verdict.NOT_TRIED),
    ):
        assert judged.verdict is verdict
        narrator = Narrator(Console(file=io.StringIO(), width=200))
        if verdict in {Verdict.LIBRARY_REFUSES_ALONE, Verdict.WE_REFUSE_ALONE}:
            with pytest.raises(RehearsalError, match="1 unexpected"):
                report([judged], narrator)
        else:
            report([judged], narrator)
