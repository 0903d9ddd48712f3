"""Commands of trainctl, each with its answer as JSON and its exit code."""

import json
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from ops.preflight.finding import Finding
from ops.status.deploy import Status
from tests.unit.ops.jobs_head_node import Call


def test_a_watch_continues_after_a_lost_answer(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = EndpointConnectionError(endpoint_url="x")
    moving, still = (
        Status(cluster_name="training", stacks=(("TrainingCluster-Network", state),), progress=None)
        for state in ("CREATE_IN_PROGRESS", "CREATE_COMPLETE")
    )
    answers: list[Status | Exception] = [moving, still, lost, moving, still, still, still, still]
    looks = iter(answers)

    def look(*_: Any, **__: Any) -> Status:
        if isinstance(found := next(looks), Exception):
            raise found
        return found

    monkeypatch.setattr("ops.status.deploy.read_status", look)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: lambda _: None)
    monkeypatch.setattr("ops.commands.status._POLL_S", 0)
    code, said, _ = call("status", "--watch")
    assert (code, next(looks, None)) == (0, None)
    assert "CREATE_COMPLETE" in said


@pytest.mark.parametrize(("verdict", "code"), [("ok", 0), ("warning", 0), ("problem", 1)])
def test_preflight_ends_with_1_for_a_problem(
    verdict: Any, code: int, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    findings = [Finding(check="network", found="a VPC", verdict=verdict)]
    monkeypatch.setattr("ops.preflight.checks.run_checks", lambda *_, **__: findings)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: None)
    ended, shown, _ = call("preflight")
    assert (ended, "a VPC" in shown) == (code, True)
    ended, shown, _ = call("preflight", "--json")
    row = {"check": "network", "found": "a VPC", "verdict": verdict, "mend": ""}
    assert (ended, json.loads(shown)) == (code, {"findings": [row], "problems": code})


def test_lint_ends_with_1_only_for_findings(call: Call, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.sh", tmp_path / "bad.sh"
    good.write_text("true\n")
    bad.write_text("export FI_PROVIDER=efa\n")
    assert call("lint", str(good))[0] == 0
    code, shown, note = call("lint", str(good), str(bad))
    assert (code, note) == (1, "1 finding(s)\n")
    assert shown.startswith(f"{bad}:1: fi-provider: ")
    code, shown, _ = call("lint", "--json", str(bad))
    (finding,) = json.loads(shown)["findings"]
    assert (code, finding["line"], finding["rule"]) == (1, 1, "fi-provider")


def test_rehearse_passes_options_and_exit_code_on(
    call: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: dict[str, Any] = {}
    monkeypatch.setattr("rehearsal.commands.rehearse", lambda **options: asked.update(options) or 3)
    assert call("rehearse", "--nodes", "4", "--folder", str(tmp_path)) == (3, "", "")
    assert (asked["nodes"], asked["folder"]) == ("4", tmp_path)
    monkeypatch.setattr("rehearsal.commands.prove", lambda **options: asked.update(options) or 1)
    code, said, _ = call("prove", "mine", "kill", "node", "--json")
    assert (code, json.loads(said)["exit_code"], asked["cases"]) == (1, 1, ["kill", "node"])


def test_new_workload_prints_its_place_and_refuses_duplicates(call: Call, tmp_path: Path) -> None:
    for beside in ("job.slurm", "prepare.sh", "train.sh", "trainkit"):
        (tmp_path / beside).touch()
    code, said, _ = call("new-workload", "mine", "--into", str(tmp_path))
    assert (code, (tmp_path / "mine" / "train.sh").exists()) == (0, True)
    assert said.startswith(f"created {tmp_path}/mine\n  rehearse it:  trainctl rehearse --workload mine\n")
    code, _, said = call("new-workload", "mine", "--into", str(tmp_path))
    assert (code, "already exists" in said) == (2, True)
