"""`trainctl deploy` starts from the flags of the last deploy, shows the plan, asks, and runs `cdk deploy`."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops.cli import app
from ops.pcluster.update_policies import Refused
from tests.unit.ops.fake_account import Account
from tests.unit.ops.plan.test_plan import deployed
from training_cluster.flags.given import left_out
from training_cluster.rules.context import read_settings
from training_cluster.storage.guarded import guarded_storage

FLAGS: dict[str, Any] = {"family": "p5", "nodes": "16", "alarm_email": "me@example.com"}
COMMAND = "npx cdk deploy TrainingClusterStack -c family=p5"


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the commands that ran; the library refuses no change."""
    commands: list[str] = []

    def run(words: list[str], **_: Any) -> Any:
        commands.append(" ".join(words))
        return subprocess.CompletedProcess(words, 7)

    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr("ops.pcluster.update_policies.ask_library", lambda pairs: [Refused()] * len(pairs))
    monkeypatch.setattr("ops.account.head_node.time.sleep", lambda _: None)
    return commands


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, runs: list[str]) -> Account:
    account = deployed(**FLAGS)
    monkeypatch.setattr("ops.account.session.account_clients", lambda: account.client)
    return account


def trainctl(*arguments: str, answer: str | None = None) -> Result:
    quick = ("--no-diff", "--no-validate", "--offline-prices")
    return CliRunner().invoke(app, [*arguments, *quick], input=answer)


def test_deploy_repeats_flags_of_the_last(account: Account, runs: list[str]) -> None:
    done = trainctl("deploy", "--yes", "-c", "nodes=4")
    assert done.exit_code == 7, "the CDK's"
    assert runs == [f"{COMMAND} -c alarm_email=me@example.com -c nodes=4 --require-approval never"]
    assert "nodes" in done.output
    assert "alarm_email" not in done.output.partition("runs: ")[0]
    planned = trainctl("plan", "-c", "nodes=4").output
    assert "alarm_email" not in planned


def test_empty_values_give_flags_up(account: Account, runs: list[str]) -> None:
    done = trainctl("deploy", "--yes", "-c", "alarm_email=")
    assert "alarm_email" in done.output.partition("runs: ")[0]
    assert runs == [f"{COMMAND} -c nodes=16 -c alarm_email= --require-approval never"]


def test_flags_of_shared_stacks_are_their_guards() -> None:
    """Their record in the cluster's own template may be older than another cluster's deploy."""
    missed = left_out(read_settings({"nodes": "4"}))
    assert {"alarm_email", "home", "permissions_boundary"} < missed.keys()
    assert not {"nodes", "ssh_from", "endpoints", "fsx_gib", "efs_mibps", "zone"} & missed.keys()
    ids = {"vpc_id": "vpc", "subnet_id": "subnet", "node_security_group_id": "sg"}
    for flags, policy in (({}, "given"), ({"fsx_mbps_per_tib": "500"}, "changes")):
        kept = guarded_storage(read_settings(flags), **ids)
        assert kept["fsx_mbps_per_tib"].policy == policy, (
            "left out, it stays as another cluster's deploy had it"
        )


def test_kept_flags_that_contradict_are_named(account: Account, runs: list[str]) -> None:
    done = trainctl("deploy", "--yes", "-c", "alarm_email=", "-c", "image_rebuild=monthly")
    assert done.exit_code != 0
    assert "kept from the last deploy: -c family=p5 -c nodes=16" in str(done.exception)
    assert runs == []


def test_deploy_asks_on_a_terminal(
    account: Account, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = trainctl("deploy")
    assert "type:   trainctl deploy --yes" in str(refused.exception)
    assert (account.asked, runs) == ([], [])
    monkeypatch.setattr("typer.testing._NamedTextIOWrapper.isatty", lambda _: True)
    assert (trainctl("deploy", answer="n\n").exit_code, runs) == (1, [])
    trainctl("deploy", answer="y\n")
    assert runs == [f"{COMMAND} -c nodes=16 -c alarm_email=me@example.com"]


def test_refused_plans_are_not_deployed(account: Account, runs: list[str]) -> None:
    assert trainctl("deploy", "--yes", "-c", "fsx_type=scratch2").exit_code == 1
    assert runs == []


def test_deploys_without_recorded_flags_are_refused(account: Account, runs: list[str]) -> None:
    account.answers["GetTemplate"] = {"TemplateBody": "{}"}
    done = trainctl("deploy", "--yes")
    assert "recorded no flags" in str(done.exception)
    assert runs == []


def test_missing_files_of_recorded_flags_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runs: list[str]
) -> None:
    users = tmp_path / "users.yaml"
    users.write_text("users: {ann: {uid: 5001}}\n")
    account = deployed(users=str(users))
    users.unlink()
    monkeypatch.setattr("ops.account.session.account_clients", lambda: account.client)
    done = trainctl("deploy", "--yes")
    assert f"was deployed with users={users}, and there is no {users}" in str(done.exception)
    assert "-c users= to deploy without one" in str(done.exception)
    assert runs == []
