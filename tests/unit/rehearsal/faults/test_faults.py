"""`make faults` sees a wrong case; the rest it shows itself when it runs."""

import queue
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rehearsal.faults.cases import Case
from rehearsal.faults.run import _Table, _work
from rehearsal.faults.safe_ways import CHANGES, steps
from rehearsal.faults.verdict import Results, Verdict, summary
from tests.unit.assets.functions import load
from training_cluster.functions.guarded import Guarded
from training_cluster.network.guarded import guarded_network
from training_cluster.rules.context import read_settings
from training_cluster.storage.guarded import guarded_storage

ANSWER: dict[str, Any] = {"id": "a", "ended": "CREATE_COMPLETE", "next": "CREATE_COMPLETE", "stuck": []}


def test_what_is_wrong_is_said_and_counted() -> None:
    wrong: tuple[dict[str, Any], ...] = (
        {"stuck": ["UPDATE_ROLLBACK_FAILED"]},
        {"orphans": ["instance i-1", "instance i-2"]},
        {"lost": ["fsx fs-1"], "stuck": ["x"]},
    )
    denied = Verdict(**ANSWER | {"denied": ["request ec2:RunInstances: role x is not authorized"]})
    verdicts = [Verdict(**ANSWER | changes) for changes in wrong]
    for each in (*verdicts, denied):
        assert not each.is_good
        assert [kind for kind in ("stuck", "orphans", "lost", "denied") if getattr(each, kind)] == [
            kind for kind in ("stuck", "orphans", "lost", "denied") if f"{kind.upper()}: " in each.row(1, 2)
        ]
    verdicts += [Verdict(**ANSWER), Verdict(**ANSWER | {"fired": False})]  # the last one does not count
    assert summary(verdicts) == "4 cases: 2 stuck, 1 orphans, 1 lost"
    assert summary([*verdicts, denied]) == "5 cases: 2 stuck, 1 orphans, 1 lost, 1 with denied calls"


def test_denied_call_fails_its_case_alone(tmp_path: Path) -> None:
    log = tmp_path / "denied-calls.log"
    log.write_text("before: role x\n")

    class Process:
        def ask(self, question: dict[str, Any]) -> dict[str, Any]:
            if question["id"] == "second":
                log.write_text(log.read_text() + "request ec2:RunInstances: role x\n")
            return {**ANSWER, "id": question["id"], "calls": []}

    narrator: Any = SimpleNamespace(console=SimpleNamespace(print=lambda *_, **__: None))
    table = _Table(Results(tmp_path / "faults.jsonl"), narrator)
    todo: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for name in ("first", "second", "third"):
        todo.put(Case(id=name, question={"id": name}))
    site: Any = SimpleNamespace(address=SimpleNamespace(denied_calls=log))
    process: Any = Process()
    _work(site, process, todo=todo, table=table, workspace=Any, narrator=narrator)  # type: ignore[arg-type]
    denied = {name: each.denied for name, each in table.verdicts.items()}
    assert denied == {"first": [], "second": ["request ec2:RunInstances: role x"], "third": []}
    assert [name for name, each in table.verdicts.items() if not each.is_good] == ["second"]


def _guards(flags: Mapping[str, str]) -> dict[str, Guarded]:
    settings = read_settings(flags)
    ids = dict.fromkeys(("vpc_id", "subnet_id", "node_security_group_id"), "any")
    return guarded_storage(settings, **ids) | guarded_network(settings)


def _ways(guarded: Mapping[str, Guarded]) -> dict[str, str]:
    """Return the safe ways by flag, those that differ in the name of the flag alone as one."""
    return {
        flag: re.sub(rf"{flag}=({{old}}| )", r"FLAG=\1", each.safe_way)
        for flag, each in guarded.items()
        if each.safe_way
    }


def test_each_safe_way_is_typed_by_a_case() -> None:
    refused = load("guard")["transitions"].refused_changes
    known, typed = set[str](), set[str]()
    for start, *changes in CHANGES.values():
        for wanted in changes:
            old, new = (_guards(flags) for flags in (start, wanted))
            values = ({flag: each.as_property() for flag, each in kept.items()} for kept in (old, new))
            flags = [text.partition(": ")[0] for text in refused(*values)]
            known |= {*_ways(old).values(), *_ways(new).values()}
            typed |= {_ways(new)[flag] for flag in flags}
    assert known == typed, f"no case of rehearsal/faults/safe_ways.py types: {known - typed}"
    for way in typed:
        keep, move = steps(way)
        said = re.findall("trainctl|aws fsx|then deploy", way)
        assert (len(move), bool(keep or said)) == (len(said), True), f"safe_ways.py does not read: {way}"
