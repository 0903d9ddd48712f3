"""The verdicts of `make validate`: a difference between our flags and the library is never quiet."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.run import region_of
from rehearsal.validation.cases import CAPACITIES, FEATURES, OS_NAMES, REFUSED_BY_US_ALONE, Case, all_cases
from rehearsal.validation.library import Finding
from rehearsal.validation.run import report
from rehearsal.validation.verdicts import Judged, Verdict, render_matrix
from training_cluster.catalog.families import family_names, load_family

ERROR = Finding(level="ERROR", validator="SomeValidator", message="no, never")
WARNING = Finding(level="WARNING", validator="SomeValidator", message="are you sure?")


def _case(row: str = "p4d", os_name: str = "ubuntu2204", **changes: str) -> Case:
    named = {"table": "family", "row": row, "column": "spot", "os_name": os_name} | changes
    return Case(**named, flags={})


def _judged(
    *findings: Finding, refusal: str | None = None, case: Case | None = None, asked: bool = True
) -> Judged:
    return Judged(case=case or _case(), refusal=refusal, findings=findings if asked else None)


@pytest.mark.parametrize(
    ("judged", "verdict"),
    [
        (_judged(), Verdict.BOTH_TAKE),
        (_judged(WARNING), Verdict.BOTH_TAKE),
        (_judged(ERROR, refusal="no"), Verdict.BOTH_REFUSE),
        (_judged(ERROR, WARNING), Verdict.LIBRARY_REFUSES_ALONE),
        (_judged(WARNING, refusal="no"), Verdict.WE_REFUSE_ALONE),
        (_judged(refusal="no", case=_case("block, few run")), Verdict.WE_REFUSE_FOR_A_REASON),
        (_judged(asked=False), Verdict.NOT_TRIED),
    ],
)
def test_two_answers_are_one_verdict(judged: Judged, verdict: Verdict) -> None:
    assert judged.verdict is verdict
    differs = {Verdict.LIBRARY_REFUSES_ALONE, Verdict.WE_REFUSE_ALONE}
    assert judged.verdict.is_expected is (verdict not in differs)


def _report(*judged: Judged) -> str:
    output = io.StringIO()
    report(list(judged), Narrator(Console(file=output, width=200)))
    return output.getvalue()


def test_all_is_well_when_both_say_the_same() -> None:
    said = _report(_judged(WARNING), _judged(ERROR, refusal="no", case=_case(os_name="ubuntu2404")))
    assert "2 combinations: 1 accepted by both (ok), 1 refused by both (no)" in said
    assert "0 unexpected" in said
    assert "WARNING SomeValidator in 1 cases, such as p4d spot ubuntu2204: are you sure?" in said


@pytest.mark.parametrize("wrong", [_judged(ERROR), _judged(refusal="no")])
def test_a_difference_fails(wrong: Judged) -> None:
    with pytest.raises(RehearsalError, match="1 unexpected"):
        _report(wrong)


def test_a_cell_says_each_system_where_they_differ() -> None:
    lines = render_matrix([_judged(), _judged(ERROR, case=_case(os_name="ubuntu2404"))])
    assert "ok/MISSED" in lines[1]


def test_a_family_is_rehearsed_in_a_region_that_has_it() -> None:
    regions = {name: region_of(load_family(name)) for name in family_names()}
    elsewhere = {name: region for name, region in regions.items() if region != "us-east-1"}
    assert elsewhere == {"hpc7a": "us-east-2", "p5e": "us-east-2", "trn2": "us-east-2"}


def test_every_family_way_of_buying_system_and_size_is_a_case() -> None:
    cases = list(all_cases())
    families = [(case.row, case.column, case.os_name) for case in cases if case.table == "family"]
    assert len(set(families)) == len(families) == len(family_names()) * len(CAPACITIES) * len(OS_NAMES)
    sizes = {case.column for case in cases if case.table == "size"}
    assert sizes == {each for name in family_names() for each in load_family(name).sizes}
    assert len({case.name for case in cases}) == len(cases)
    assert set(REFUSED_BY_US_ALONE) <= set(FEATURES)
