"""`trainctl users add` and `lock` print and run `trainctl deploy` with the file."""

from pathlib import Path
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.usage import OpsError
from tests.unit.ops.conftest import ActsOn
from tests.unit.ops.fake_account import Account
from training_cluster.paths import ROOT


@pytest.fixture
def account(acts_on: ActsOn) -> Account:
    return acts_on(family="p5", nodes="16")


def users(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["users", *arguments])


def typed(file: Path) -> Path:
    """Return the path as flags take it: in the folder of the app where it is there."""
    return file.relative_to(ROOT) if file.is_relative_to(ROOT) else file


def test_the_deploy_of_the_file_is_printed(tmp_path: Path) -> None:
    file = tmp_path / "users.yaml"
    done = users("add", "carol", "--file", str(file), "-c", "nodes=4", "-c", "users=other.yaml")
    assert done.output.splitlines() == [
        f"carol has the uid 5001 in {file}.",
        f"  type:   trainctl deploy -c nodes=4 -c users={typed(file)}",
    ]


def test_apply_repeats_flags_that_no_file_gives(tmp_path: Path, account: Account, runs: list[str]) -> None:
    file, flags = tmp_path / "users.yaml", tmp_path / "prod.yaml"
    flags.write_text("nodes: 8\n")
    assert users("add", "carol", "--file", str(file), "--apply").exit_code == 7
    users("lock", "carol", "--file", str(file), "--apply", "-c", f"flags={flags}")
    family, ask = "npx cdk deploy TrainingClusterStack -c family=p5", "--require-approval never"
    assert runs == [
        f"{family} -c nodes=16 -c users={typed(file)} {ask}",
        f"{family} -c flags={flags} -c users={typed(file)} {ask}",
    ]


def test_unknown_flags_refuse_apply_before_edit(tmp_path: Path, account: Account, runs: list[str]) -> None:
    file = tmp_path / "users.yaml"
    account.answers["GetTemplate"] = {"TemplateBody": "{}"}
    done = users("add", "carol", "--file", str(file), "--apply")
    assert isinstance(done.exception, OpsError)
    assert "recorded no flags" in str(done.exception)
    assert (runs, file.exists()) == ([], False)


def test_an_interrupted_plan_leaves_the_file(tmp_path: Path, account: Account, runs: list[str]) -> None:
    file = tmp_path / "users.yaml"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ops.plan.plan.read_plan", Mock(side_effect=KeyboardInterrupt))
        users("add", "carol", "--file", str(file), "--apply")
        assert (runs, [*tmp_path.iterdir()]) == ([], [])
        file.write_text(text := "users:\r\n  carol: {uid: 5001}\r\n", newline="")
        users("lock", "carol", "--file", str(file), "--apply")
    assert (runs, file.read_bytes()) == ([], text.encode())


def test_users_file_is_the_deployed_one(account: Account) -> None:
    account.answers["GetTemplate"] = {
        "TemplateBody": '{"Metadata": {"training-cluster:flags": {"users": "team.yaml"}}}'
    }
    done = users("add", "carol")
    assert isinstance(done.exception, OpsError)
    assert f"was deployed with users=team.yaml, and there is no {ROOT}/team.yaml" in str(done.exception)
