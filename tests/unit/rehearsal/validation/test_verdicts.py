"""The verdict of two answers: a difference between our flags and the library is never quiet."""

import pytest

from rehearsal.validation.verdicts import Judged, Verdict, render_matrix
from tests.unit.rehearsal.validation.judged import ERROR, WARNING, some_case, some_judged


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (some_judged(), Verdict.BOTH_TAKE),
        (some_judged(WARNING), Verdict.BOTH_TAKE),
        (some_judged(ERROR, refusal="no"), Verdict.BOTH_REFUSE),
        (some_judged(ERROR, WARNING), Verdict.LIBRARY_REFUSES_ALONE),
        (some_judged(WARNING, refusal="no"), Verdict.WE_REFUSE_ALONE),
        (some_judged(refusal="no", case=some_case("block, few run")), Verdict.WE_REFUSE_FOR_A_REASON),
        (some_judged(asked=False), Verdict.NOT_TRIED),
    ],
)
def test_two_answers_are_one_verdict(judged: Judged, verdict: Verdict) -> None:
    assert judged.verdict is verdict
    differs = {Verdict.LIBRARY_REFUSES_ALONE, Verdict.WE_REFUSE_ALONE}
    assert judged.verdict.is_expected is (verdict not in differs)


def test_a_cell_says_each_system_where_they_differ() -> None:
    lines = render_matrix([some_judged(), some_judged(ERROR, case=some_case(os_name="ubuntu2404"))])
    assert "ok/MISSED" in lines[1]
