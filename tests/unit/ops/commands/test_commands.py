"""Commands of trainctl, each with its answer as JSON and its exit code."""

import dataclasses
import datetime
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from ops.__main__ import main
from ops.preflight.finding import Finding
from ops.status.deploy import Progress, Stage, Status
from tests.unit.ops.teardown.teardown_account import everything


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The command in this process; its exit code."""
    monkeypatch.setattr(sys, "argv", ["trainctl", *arguments])
    try:
        return main()
    except SystemExit as end:
        return int(end.code or 0)


def test_the_plan_as_json_matches_the_text(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("ops.account.session.account_clients", lambda: everything().client)
    assert call(monkeypatch, "destroy", "--plan", "--json") == 0
    plan = json.loads(capsys.readouterr().out)
    assert call(monkeypatch, "destroy", "--plan") == 0
    shown = capsys.readouterr().out
    assert plan["stacks"]["TrainingCluster-Storage"]["status"] in shown
    assert plan["steps"]
    for step in plan["steps"]:
        assert step["title"] in shown
        assert all(command in shown for command in step["commands"])
    assert all(cost["what"] in shown for cost in plan["costs"])


def _status(stack: str) -> Status:
    return Status(cluster_name="training", stacks=(("TrainingCluster-Network", stack),), progress=None)


def test_status_as_json_has_stacks_and_progress(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    began = datetime.datetime(2026, 11, 21, 12, tzinfo=datetime.UTC)
    progress = Progress(request="Create", stages=(Stage(name="network", began=began),), messages=("a",))
    found = dataclasses.replace(_status("CREATE_COMPLETE"), progress=progress)
    monkeypatch.setattr("ops.status.deploy.read_status", lambda *_, **__: found)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: lambda _: None)
    assert call(monkeypatch, "status", "--json") == 0, "the next stack of a first deploy follows"
    assert json.loads(capsys.readouterr().out) == {
        "cluster_name": "training",
        "cluster": None,
        "stacks": [["TrainingCluster-Network", "CREATE_COMPLETE"]],
        "progress": {
            "request": "Create",
            "stages": [{"name": "network", "began": "2026-11-21T12:00:00Z"}],
            "messages": ["a"],
        },
        "other_clusters": [],
    }


def test_a_watch_continues_after_a_lost_answer(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = EndpointConnectionError(endpoint_url="x")
    moving, still = _status("CREATE_IN_PROGRESS"), _status("CREATE_COMPLETE")
    answers: list[Status | Exception] = [moving, still, lost, moving, still, still, still, still]
    looks = iter(answers)

    def look(*_: Any, **__: Any) -> Status:
        if isinstance(found := next(looks), Exception):
            raise found
        return found

    monkeypatch.setattr("ops.status.deploy.read_status", look)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: lambda _: None)
    monkeypatch.setattr("ops.commands.status._POLL_S", 0)
    assert call(monkeypatch, "status", "--watch") == 0
    assert next(looks, None) is None
    assert "CREATE_COMPLETE" in capsys.readouterr().out


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("warning", 0), ("problem", 1)])
@pytest.mark.parametrize("as_json", [True, False])
def test_preflight_ends_with_1_for_a_problem(
    verdict: Any,
    code: int,
    as_json: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    findings = [Finding(check="network", found="a VPC", verdict=verdict)]
    monkeypatch.setattr("ops.preflight.checks.run_checks", lambda *_, **__: findings)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: None)
    assert call(monkeypatch, "preflight", *(["--json"] if as_json else [])) == code
    shown = capsys.readouterr().out
    if as_json:
        row = {"check": "network", "found": "a VPC", "verdict": verdict, "mend": ""}
        assert json.loads(shown) == {"findings": [row], "problems": code}
    else:
        assert "a VPC" in shown


def test_lint_ends_with_1_only_for_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = tmp_path / "good.sh", tmp_path / "bad.sh"
    good.write_text("true\n")
    bad.write_text("export FI_PROVIDER=efa\n")
    assert call(monkeypatch, "lint", str(good)) == 0
    assert call(monkeypatch, "lint", str(good), str(bad)) == 1
    shown = capsys.readouterr()
    assert shown.err == "1 finding(s)\n"
    assert shown.out.startswith(f"{bad}:1: fi-provider: ")
    assert call(monkeypatch, "lint", "--json", str(bad)) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert (finding["line"], finding["rule"]) == (1, "fi-provider")


def test_rehearse_passes_options_and_exit_code_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    asked: list[dict[str, Any]] = []

    def run(**options: Any) -> int:
        asked.append(options)
        return 3

    monkeypatch.setattr("rehearsal.commands.rehearse", run)
    assert call(monkeypatch, "rehearse", "--nodes", "4", "--order", "7", "--folder", str(tmp_path)) == 3
    (options,) = asked
    assert (options["nodes"], options["order"], options["folder"]) == ("4", 7, tmp_path)
    assert capsys.readouterr().out == ""


def test_new_workload_prints_its_place_and_refuses_duplicates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for beside in ("job.slurm", "prepare.sh", "train.sh", "trainkit"):
        (tmp_path / beside).touch()
    assert call(monkeypatch, "new-workload", "mine", "--into", str(tmp_path)) == 0
    assert (tmp_path / "mine" / "train.sh").exists()
    assert capsys.readouterr().out.startswith(f"created {tmp_path}/mine\n")
    assert call(monkeypatch, "new-workload", "mine", "--into", str(tmp_path)) == 2
    assert "already exists" in capsys.readouterr().err
