"""`trainctl users add` and `lock`: the deploy that they print and run keeps the flags of the last one."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.usage import OpsError
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.plan.test_plan import deployed
from training_cluster.paths import ROOT

FLAGS: dict[str, Any] = {"family": "p5", "nodes": "16", "budget_usd": "500", "alarm_email": "me@example.com"}
KEPT = "-c family=p5 -c nodes=16 -c budget_usd=500 -c alarm_email=me@example.com"


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch) -> Account:
    account = deployed(**FLAGS)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: account.client)
    return account


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """Return the commands that ran, each with its folder."""
    commands: list[tuple[str, Any]] = []

    def run(words: list[str], *, cwd: Path, **_: Any) -> Any:
        commands.append((" ".join(words), cwd))
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr("subprocess.run", run)
    return commands


def users(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["users", *arguments])


def test_printed_deploy_keeps_recorded_flags(tmp_path: Path, account: Account) -> None:
    file = tmp_path / "users.yaml"
    done = users("add", "carol", "--file", str(file), "-c", "nodes=4")
    assert done.exit_code == 0, done.output
    flag = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    kept = KEPT.replace("-c nodes=16 ", "")
    assert done.output.splitlines() == [
        f"carol has the uid 5001 in {file}.",
        f"  type:   npx cdk deploy TrainingClusterStack {kept} -c users={flag} -c nodes=4",
    ]


def test_apply_runs_with_recorded_flags(
    tmp_path: Path, account: Account, runs: list[tuple[str, Any]]
) -> None:
    file = tmp_path / "users.yaml"
    assert users("add", "carol", "--file", str(file), "--apply").exit_code == 0
    assert users("lock", "carol", "--file", str(file), "--apply").exit_code == 0
    flag = file.relative_to(ROOT) if file.is_relative_to(ROOT) else file
    assert runs == [(f"npx cdk deploy TrainingClusterStack {KEPT} -c users={flag}", ROOT)] * 2


def test_unknown_flags_refuse_apply_before_edit(
    tmp_path: Path, account: Account, runs: list[tuple[str, Any]]
) -> None:
    file = tmp_path / "users.yaml"
    account.answers["GetTemplate"] = {"TemplateBody": "{}"}
    done = users("add", "carol", "--file", str(file), "--apply")
    assert isinstance(done.exception, OpsError)
    assert "recorded no flags" in str(done.exception)
    assert (runs, file.exists()) == ([], False)
    account.answers["GetTemplate"] = Refused("AccessDenied")
    assert users("add", "carol", "--file", str(file)).output.endswith(", with its flags\n")


def test_users_file_is_the_deployed_one(account: Account) -> None:
    account.answers["GetTemplate"] = {
        "TemplateBody": '{"Metadata": {"training-cluster:flags": {"users": "team.yaml"}}}'
    }
    done = users("add", "carol")
    assert isinstance(done.exception, OpsError)
    assert f"was deployed with users=team.yaml, and there is no {ROOT}/team.yaml" in str(done.exception)
