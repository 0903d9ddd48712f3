"""The report of `make validate`."""

import io

import pytest
from rich.console import Console

from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.validation.run import report
from rehearsal.validation.verdicts import Judged
from tests.unit.rehearsal.validation.judged import ERROR, WARNING, some_case, some_judged


def _report(*judged: Judged) -> str:
    output = io.StringIO()
    report(list(judged), Narrator(Console(file=output, width=200)))
    return output.getvalue()


def test_all_is_well_when_both_say_the_same() -> None:
    said = _report(
        some_judged(WARNING), some_judged(ERROR, refusal="no", case=some_case(os_name="ubuntu2404"))
    )
    assert "2 combinations: 1 accepted by both (ok), 1 refused by both (no)" in said
    assert "0 unexpected" in said
    assert "WARNING SomeValidator in 1 cases, such as p4d spot ubuntu2204: are you sure?" in said


@pytest.mark.parametrize("wrong", [some_judged(ERROR), some_judged(refusal="no")])
def test_a_difference_fails(wrong: Judged) -> None:
    with pytest.raises(RehearsalError, match="1 unexpected"):
        _report(wrong)
