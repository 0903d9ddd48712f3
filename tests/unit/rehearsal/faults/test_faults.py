"""`make faults`: its cases, their counts, and how an interrupted run is resumed."""

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.faults.cases import KINDS, call_cases, interleaved, named_cases, sample
from rehearsal.faults.verdict import Results, Verdict, summary

CALLS = ["s3.GetObject"] * 5 + ["ec2.DescribeImages"] * 2 + ["cloudformation.CreateStack"]


def _verdict(**changes: Any) -> Verdict:
    facts: dict[str, Any] = {
        "id": "a",
        "request": "Create",
        "fired": True,
        "ended": "CREATE_COMPLETE",
        "next": "CREATE_COMPLETE",
        "stuck": [],
        "orphans": [],
        "lost": [],
        "reasons": [],
        "seconds": 1.0,
    }
    return Verdict(**facts | changes)


def _faults(*, everywhere: bool) -> set[tuple[str, int, str]]:
    cases = call_cases("Create", CALLS, everywhere=everywhere)
    faults: list[Any] = [case.question["fault"] for case in cases]
    return {(fault["call"], fault["occurrence"], fault["kind"]) for fault in faults}


def test_everywhere_is_each_kind_at_the_first_a_middle_and_the_last_call() -> None:
    faults = _faults(everywhere=True)
    assert {place for call, place, _ in faults if call == "s3.GetObject"} == {1, 3, 5}
    assert {place for call, place, _ in faults if call == "ec2.DescribeImages"} == {1, 2}
    assert len(faults) == (3 + 2 + 1) * len(KINDS)


def test_in_turns_each_name_fails_in_each_way_and_at_each_place() -> None:
    faults = _faults(everywhere=False)
    assert len(faults) == 3 * len(KINDS)
    for call, places in {"s3.GetObject": {1, 3, 5}, "ec2.DescribeImages": {1, 2}}.items():
        assert {place for name, place, _ in faults if name == call} == places
        assert {kind for name, _, kind in faults if name == call} == set(KINDS)
    assert faults <= _faults(everywhere=True)


def test_every_case_has_a_name_of_its_own() -> None:
    ids = [case.id for case in call_cases("Create", CALLS, everywhere=True)]
    assert len(ids) == len(set(ids))


def test_a_create_comes_before_its_updates_and_its_delete_and_none_is_forgotten() -> None:
    cases = {
        request: named_cases(f"{request}{n}" for n in range(count))
        for request, count in {"Create": 6, "Update": 9, "Delete": 3}.items()
    }
    order = [case.id for case in interleaved(cases)]
    assert sorted(order) == sorted(case.id for part in cases.values() for case in part)
    assert order[0].startswith("Create")
    assert [name[:6] for name in order].index("Update") < [name[:6] for name in order].index("Delete")


def test_a_sample_is_the_same_for_the_same_seed_and_another_for_another() -> None:
    cases = call_cases("Create", CALLS, everywhere=True)
    assert sample(cases, 5, 1) == sample(cases, 5, 1)
    assert sample(cases, 5, 1) != sample(cases, 5, 2)
    assert sample(cases, 500, 1) == cases


def test_the_last_line_has_the_figures_that_were_found() -> None:
    verdicts = [
        _verdict(),
        _verdict(stuck=["UPDATE_ROLLBACK_FAILED"]),
        _verdict(orphans=["instance i-1", "instance i-2"]),
        _verdict(lost=["fsx fs-1"], stuck=["x"]),
    ]
    assert summary(verdicts) == "4 cases: 2 stuck, 1 orphans, 1 lost"
    denied = [*verdicts, _verdict(denied=["request ec2:RunInstances: role x is not authorized"])]
    assert summary(denied) == "5 cases: 2 stuck, 1 orphans, 1 lost, 1 with denied calls"


def test_a_case_whose_fault_did_not_come_about_does_not_count() -> None:
    assert summary([_verdict(), _verdict(fired=False)]) == "1 cases: 0 stuck, 0 orphans, 0 lost"
    assert "not reached" in _verdict(fired=False).row(1, 2)


@pytest.mark.parametrize("wrong", ["stuck", "orphans", "lost", "denied"])
def test_whatever_is_wrong_stands_in_the_row(wrong: str) -> None:
    verdict = _verdict(**{wrong: ["the fleet"]})
    assert not verdict.is_good
    assert f"{wrong.upper()}: the fleet" in verdict.row(1, 2)


def test_what_was_tried_is_not_tried_again_unless_the_code_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl"
    results = Results(path)
    assert results.read() == {}
    results.add(_verdict(id="a"))
    results.add(_verdict(id="b", lost=["fsx fs-1"]))
    assert Results(path).read() == {"a": _verdict(id="a"), "b": _verdict(id="b", lost=["fsx fs-1"])}
    path.write_text(path.read_text() + '{"fingerprint": "cut sh')
    assert set(Results(path).read()) == {"a", "b"}
    lines = [json.loads(line) | {"fingerprint": "older"} for line in path.read_text().splitlines()[:2]]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert Results(path).read() == {}
