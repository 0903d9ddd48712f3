"""A case of `make faults` that fails, and the other cases of its run."""

import queue
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.faults.cases import Case
from rehearsal.faults.run import _Table, _work
from rehearsal.faults.scene import Scene
from rehearsal.faults.verdict import Results, Verdict

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


def _tried(tmp_path: Path, process: Any, *names: str) -> dict[str, Verdict]:
    narrator: Any = SimpleNamespace(console=SimpleNamespace(print=lambda *_, **__: None))
    table = _Table(Results(tmp_path / "faults.jsonl"), narrator)
    todo: queue.SimpleQueue[Case] = queue.SimpleQueue()
    for name in names:
        todo.put(Case(id=name, question={"id": name}))
    site: Any = SimpleNamespace(address=SimpleNamespace(denied_calls=tmp_path / "denied-calls.log"))
    workspace: Any = None
    _work([(site, process)], todo, table, workspace, narrator)
    return table.verdicts


def test_denied_call_fails_its_case_alone(tmp_path: Path) -> None:
    log = tmp_path / "denied-calls.log"
    log.write_text("before: role x\n")

    class Process:
        def ask(self, question: dict[str, Any]) -> dict[str, Any]:
            if question["id"] == "second":
                log.write_text(log.read_text() + "request ec2:RunInstances: role x\n")
            return {"id": question["id"], **ANSWER}

    verdicts = _tried(tmp_path, Process(), "first", "second", "third")
    assert {name: each.denied for name, each in verdicts.items()} == {
        "first": [],
        "second": ["request ec2:RunInstances: role x"],
        "third": [],
    }
    assert [name for name, each in verdicts.items() if not each.is_good] == ["second"]


def test_deploy_that_changes_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SimpleNamespace(describe_stack_events=lambda **_: {"StackEvents": [{"EventId": "1"}]})
    monkeypatch.setattr(Scene, "client", lambda *_: client)
    monkeypatch.setattr(Scene, "deploy_command", lambda *_, **__: ["deploy"])
    site: Any = SimpleNamespace(cdk=SimpleNamespace(run=lambda *_: None))
    with pytest.raises(AssertionError, match=r"a deploy with .*os.* changed nothing"):
        Scene(site, "whole-1").deploy(os="ubuntu2404")
