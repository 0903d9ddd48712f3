"""`make faults`: no case is lost, and a wrong one is seen; the cases show their own faults when they run."""

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.faults.cases import KINDS, call_cases, interleaved, named_cases
from rehearsal.faults.verdict import Results, Verdict, summary

CALLS = ["s3.GetObject"] * 5 + ["ec2.DescribeImages"] * 2 + ["cloudformation.CreateStack"]


def _verdict(**changes: Any) -> Verdict:
    lists: dict[str, list[str]] = {"stuck": [], "orphans": [], "lost": [], "reasons": []}
    facts: dict[str, Any] = {
        "id": "a",
        "request": "Create",
        "fired": True,
        "ended": "",
        "next": "",
        "seconds": 1.0,
    }
    return Verdict(**facts | lists | changes)


def _faults(*, everywhere: bool) -> set[tuple[str, int, str]]:
    cases = call_cases("Create", CALLS, everywhere=everywhere)
    assert len({case.id for case in cases}) == len(cases)
    faults: list[Any] = [case.question["fault"] for case in cases]
    return {(fault["call"], fault["occurrence"], fault["kind"]) for fault in faults}


def test_each_call_fails_in_each_way_and_place() -> None:
    every, turns = _faults(everywhere=True), _faults(everywhere=False)
    assert {place for call, place, _ in every if call == "s3.GetObject"} == {1, 3, 5}
    assert len(every) == (3 + 2 + 1) * len(KINDS)
    assert turns <= every
    for part in (0, 1), (0, 2):
        assert {tuple(each[n] for n in part) for each in turns} == {
            tuple(each[n] for n in part) for each in every
        }


def test_create_comes_before_updates_and_delete() -> None:
    cases = {
        request: named_cases(f"{request}{n}" for n in range(count))
        for request, count in {"Create": 6, "Update": 9, "Delete": 3}.items()
    }
    order = [case.id for case in interleaved(cases)]
    assert sorted(order) == sorted(case.id for part in cases.values() for case in part)
    assert order[0].startswith("Create")
    assert [name[:6] for name in order].index("Update") < [name[:6] for name in order].index("Delete")


def test_last_line_counts_what_is_wrong() -> None:
    verdicts = [
        _verdict(),
        _verdict(stuck=["UPDATE_ROLLBACK_FAILED"]),
        _verdict(orphans=["instance i-1", "instance i-2"]),
        _verdict(lost=["fsx fs-1"], stuck=["x"]),
        _verdict(fired=False),  # does not count
    ]
    assert summary(verdicts) == "4 cases: 2 stuck, 1 orphans, 1 lost"
    denied = [*verdicts, _verdict(denied=["request ec2:RunInstances: role x is not authorized"])]
    assert summary(denied) == "5 cases: 2 stuck, 1 orphans, 1 lost, 1 with denied calls"


@pytest.mark.parametrize("wrong", ["stuck", "orphans", "lost", "denied"])
def test_row_says_what_is_wrong(wrong: str) -> None:
    verdict = _verdict(**{wrong: ["the fleet"]})
    assert not verdict.is_good
    assert f"{wrong.upper()}: the fleet" in verdict.row(1, 2)


def test_tried_cases_are_kept_for_this_code(tmp_path: Path) -> None:
    path = tmp_path / "faults.jsonl"
    results = Results(path)
    assert results.read() == {}
    results.add(_verdict(id="a", lost=["fsx fs-1"]))
    path.write_text(path.read_text() + '{"fingerprint": "cut sh')
    assert Results(path).read() == {"a": _verdict(id="a", lost=["fsx fs-1"])}
    line = json.loads(path.read_text().splitlines()[0]) | {"fingerprint": "older"}
    path.write_text(json.dumps(line) + "\n")
    assert Results(path).read() == {}
