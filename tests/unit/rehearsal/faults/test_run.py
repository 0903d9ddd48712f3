"""A case of `make faults` and the calls that were denied while it ran."""

from __future__ import annotations

import queue
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from rehearsal.faults.cases import Case
from rehearsal.faults.run import _Table, _work
from rehearsal.faults.verdict import Results

ANSWER = {
    "request": "Create",
    "fired": True,
    "ended": "CREATE_COMPLETE",
    "next": "CREATE_COMPLETE",
    "stuck": [],
    "orphans": [],
    "lost": [],
    "reasons": [],
    "seconds": 1.0,
    "calls": [],
}


def test_a_call_that_is_denied_during_a_case_fails_this_case_and_no_other(tmp_path: Path) -> None:
    log = tmp_path / "denied-calls.log"
    log.write_text("before: role x\n")

    class Process:
        def ask(self, question: dict[str, Any]) -> dict[str, Any]:
            if question["id"] == "second":
                log.write_text(log.read_text() + "request ec2:RunInstances: role x\n")
            return {"id": question["id"], **ANSWER}

    narrator: Any = SimpleNamespace(console=SimpleNamespace(print=lambda *_, **__: None))
    table = _Table(Results(tmp_path / "faults.jsonl"), narrator)
    todo: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for name in ("first", "second", "third"):
        todo.put(Case(id=name, question={"id": name}))
    site: Any = SimpleNamespace(address=SimpleNamespace(denied_calls=log))
    process: Any = Process()
    workspace: Any = None
    _work([(site, process)], todo, table, workspace, narrator)
    assert {name: each.denied for name, each in table.verdicts.items()} == {
        "first": [],
        "second": ["request ec2:RunInstances: role x"],
        "third": [],
    }
    assert [name for name, each in table.verdicts.items() if not each.is_good] == ["second"]
