"""`trainctl deploy` starts from the flags of the last deploy, shows the plan, asks, and runs `cdk deploy`."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ops.asset_code import asset_code
from ops.cli import app
from tests.unit.ops.conftest import ActsOn
from tests.unit.ops.fake_account import Account
from training_cluster.flags.given import GIVEN_FLAGS, given_flags, left_out
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER, FORMER_DEFAULT
from training_cluster.storage.guarded import guarded_storage

FLAGS: dict[str, Any] = {"family": "p5", "nodes": "16", "alarm_email": "me@example.com"}
COMMAND = "npx cdk deploy TrainingClusterStack -c family=p5"


@pytest.fixture
def account(acts_on: ActsOn, runs: list[str]) -> Account:
    return acts_on(**FLAGS)


def trainctl(*arguments: str, answer: str | None = None) -> Result:
    quick = ("--no-diff", "--no-validate", "--offline-prices")
    return CliRunner().invoke(app, [*arguments, *quick], input=answer)


def test_deploy_repeats_flags_of_the_last(account: Account, runs: list[str], tmp_path: Path) -> None:
    done = trainctl("deploy", "--yes", "-c", "nodes=4")
    assert done.exit_code == 7, "the CDK's"
    assert runs == [f"{COMMAND} -c alarm_email=me@example.com -c nodes=4 --require-approval never"]
    assert "nodes" in done.output
    assert "alarm_email" not in done.output.partition("runs: ")[0]
    planned = trainctl("plan", "-c", "nodes=4").output
    assert "alarm_email" not in planned
    (file := tmp_path / "prod.yaml").write_text("nodes: 4\n")
    said = trainctl("deploy", "--yes", "-c", f"flags={file}").output
    assert f"and not in {file}: family=p5, alarm_email=me@example.com\n" in said


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


def test_flags_that_need_an_emptied_one_are_named(account: Account, runs: list[str], acts_on: ActsOn) -> None:
    done = trainctl("deploy", "--yes", "-c", "alarm_email=", "-c", "image_rebuild=monthly")
    assert "kept from the last deploy: -c family=p5 -c nodes=16" in str(done.exception)
    assert "type the same with" not in str(done.exception), "only the given ones contradict"
    acts_on(**FLAGS, budget_usd="500")
    done = trainctl("deploy", "--yes", "-c", "alarm_email=")
    assert str(done.exception).endswith("type the same with: -c budget_usd=")
    assert runs == []
    trainctl("deploy", "--yes", "-c", "alarm_email=", "-c", "budget_usd=")
    assert runs == [f"{COMMAND} -c nodes=16 -c alarm_email= -c budget_usd= --require-approval never"]


def test_flags_move_to_a_queue_of_a_file(tmp_path: Path, runs: list[str], acts_on: ActsOn) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("train: {family: g6e, nodes: 4}\n")
    acts_on(**FLAGS, queue_name="train", instance_type="p5.48xlarge")
    trainctl("deploy", "--yes", "-c", f"queues={file}")
    kept = COMMAND.replace("family=p5", "queue_name=train -c alarm_email=me@example.com")
    assert runs == [f"{kept} -c queues={file} --require-approval never"]


def test_keys_removed_from_queues_file_stay_removed(tmp_path: Path, runs: list[str], acts_on: ActsOn) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("train: {family: p5, nodes: 4, image: ami-0123456789abcdef0}\n")
    typed = {"queues": str(file), "queue_name": "train", "idle_minutes": "30"}
    acts_on(**typed)
    last = given_flags(read_settings(typed))
    file.write_text("train: {family: g6e, nodes: 8}\n")
    trainctl("deploy", "--yes")
    (command,) = runs
    pairs = {f"{flag}={value}" for flag, value in typed.items()}
    assert {*command.removesuffix(" --require-approval never").split(" -c ")[1:]} == pairs
    transitions = asset_code("guard", "transitions").transitions
    assert transitions.forgotten_flags("s", "c", last, left_out(read_settings(typed))) == []
    # Under another name the queue would be one of the flags' defaults, beside the file's.
    file.write_text("other: {family: p5, nodes: 4}\n")
    (said,) = transitions.forgotten_flags("s", "c", last, left_out(read_settings(typed)))
    assert "-c nodes=4" in said


def test_a_second_cluster_starts_from_the_first(account: Account, runs: list[str], tmp_path: Path) -> None:
    trainctl("deploy", "--yes", "--cluster", "training", "-c", "cluster_name=training-2")
    kept = f"{COMMAND} -c nodes=16 -c alarm_email=me@example.com"
    assert runs == [f"{kept} -c cluster_name=training-2 --require-approval never"]
    file = tmp_path / "second.yaml"
    file.write_text("cluster_name: training-2\n")
    trainctl("deploy", "--yes", "--cluster", "training", "-c", f"flags={file}")
    assert runs[1:] == [f"{kept} -c flags={file} --require-approval never"]


def test_the_former_default_keeps_its_name(
    acts_on: ActsOn, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Earlier releases did not record it, since it was the default."""
    acts_on(cluster_name=FORMER_DEFAULT, **FLAGS)
    recorded = {FORMER_DEFAULT: FLAGS}
    monkeypatch.setattr("ops.plan.remembered.read_flags", lambda name, _: recorded.get(name))
    trainctl("deploy", "--yes", "-c", "alarm_email=")
    trainctl("deploy", "--yes", "--cluster", DEFAULT_CLUSTER, "-c", "alarm_email=")
    flag = f" -c cluster_name={FORMER_DEFAULT}"
    kept, given = f"{COMMAND} -c nodes=16", " -c alarm_email= --require-approval never"
    assert runs == [kept.replace(" -c", f"{flag} -c", 1) + given, kept + flag + given]
    recorded.clear()
    done = trainctl("deploy", "--yes", "-c", "nodes=4")
    assert f"TrainingClusterStack{flag} -c nodes=4, with its other flags" in str(done.exception)


def test_flags_are_those_of_the_apps_folder(
    account: Account, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not of a cdk.json in the folder of the shell: the deploy runs in the app's."""
    (tmp_path / "cdk.json").write_text('{"context": {"alarm_email": "else@example.com"}}')
    monkeypatch.chdir(tmp_path)
    trainctl("deploy", "--yes")
    assert runs == [f"{COMMAND} -c nodes=16 -c alarm_email=me@example.com --require-approval never"]


def test_deploy_asks_on_terminal(account: Account, runs: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert "nodez" in str(trainctl("deploy", "-c", "nodez=4").exception)
    refused = trainctl("deploy")
    assert "type:   trainctl deploy --yes" in str(refused.exception)
    assert (account.asked, runs) == ([], [])
    monkeypatch.setattr("typer.testing._NamedTextIOWrapper.isatty", lambda _: True)
    assert (trainctl("deploy", answer="n\n").exit_code, runs) == (1, [])
    trainctl("deploy", answer="y\n")
    assert runs == [f"{COMMAND} -c nodes=16 -c alarm_email=me@example.com"]


def test_flags_of_another_release_are_left_out(account: Account, runs: list[str]) -> None:
    recorded = {GIVEN_FLAGS: {"family": "p5", "gone": "1"}}
    account.answers["GetTemplate"] = {"TemplateBody": json.dumps({"Metadata": recorded})}
    trainctl("deploy", "--yes")
    assert runs == [f"{COMMAND} --require-approval never"]


def test_refused_and_unknown_plans_are_not_deployed(account: Account, runs: list[str]) -> None:
    assert (trainctl("deploy", "--yes", "-c", "fsx_type=scratch2").exit_code, runs) == (1, [])
    account.answers["GetTemplate"] = {"TemplateBody": "{}"}
    done = trainctl("deploy", "--yes")
    assert "recorded no flags" in str(done.exception)
    assert runs == []


def test_missing_files_of_recorded_flags_are_refused(
    tmp_path: Path, runs: list[str], acts_on: ActsOn
) -> None:
    users = tmp_path / "users.yaml"
    users.write_text("users: {ann: {uid: 5001}}\n")
    acts_on(users=str(users))
    users.unlink()
    done = trainctl("deploy", "--yes")
    assert f"was deployed with users={users}, and there is no {users}" in str(done.exception)
    assert "-c users= to deploy without one" in str(done.exception)
    assert runs == []
