"""`make faults` sees a wrong case; the rest it shows itself when it runs."""

import queue
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rehearsal.faults.cases import Case
from rehearsal.faults.run import _Table, _work
from rehearsal.faults.verdict import Results, Verdict, summary

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
