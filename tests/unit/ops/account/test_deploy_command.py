"""The deploys that trainctl prints and runs keep the flags of the last deploy."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from ops.account.deploy_command import deploy_command, deploy_words, repeated_flags
from ops.account.deployed_flags import flags_of, flags_or_none, read_flags
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.plan.test_plan import deployed
from training_cluster.flags.given import GIVEN_FLAGS, given_flags
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import STORAGE_STACK

RECORDED = {"family": "p5", "nodes": 16, "tags": "team=my team", "on_busy": "stop", "metrics": "cloudwatch"}


def test_changed_flags_replace_recorded_ones() -> None:
    words = deploy_words("training", RECORDED, nodes=4, users="users.yaml")
    flags = ["family=p5", "tags=team=my team", "nodes=4", "users=users.yaml"]
    assert words[4:] == [word for flag in flags for word in ("-c", flag)]
    assert shlex.split(deploy_command("training", RECORDED, nodes=4, users="users.yaml")) == words


def test_another_cluster_is_named() -> None:
    start = "npx cdk deploy TrainingClusterStack -c family=p5 -c cluster_name="
    assert deploy_command("b", {"family": "p5", "cluster_name": "b"}) == f"{start}b"
    assert deploy_command("b", {"family": "p5", "cluster_name": "b"}, cluster_name="b-2") == f"{start}b-2"


def test_a_named_cluster_replaces_cdk_jsons() -> None:
    named = "npx cdk deploy TrainingClusterStack -c cluster_name=training"
    assert deploy_command("training", {}, cluster_name="training") == named


def test_flags_of_changed_queues_files_are_left_out(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("train: {family: p5, nodes: 4}\n")
    typed = {"queues": str(file), "queue_name": "train", "idle_minutes": "30"}
    recorded = given_flags(read_settings(typed))
    file.write_text("train: {family: g6e, nodes: 8}\n")
    repeated = repeated_flags(recorded)
    assert {flag: str(value) for flag, value in repeated.items()} == typed
    assert read_settings(repeated).nodes == 8
    file.unlink()
    assert repeated_flags(recorded) == recorded


def test_unknown_flags_are_mentioned() -> None:
    command = "npx cdk deploy TrainingClusterStack"
    assert deploy_command("training", None, nodes=4) == f"{command} -c nodes=4, with its flags"
    assert deploy_command("training", {}) == command


@pytest.mark.parametrize(
    ("network", "ssh"),
    [
        ("203.0.113.0/24", {"ssh_from=203.0.113.0/24"}),
        ("0.0.0.0/0", {"ssh_from=0.0.0.0/0", "ssh_from_anywhere=yes"}),
        (None, set()),
    ],
)
def test_flags_of_shared_stacks_are_the_deployed_ones(network: str | None, ssh: set[str]) -> None:
    anywhere = {"ssh_from": "0.0.0.0/0", "ssh_from_anywhere": "yes"}
    recorded: dict[str, Any] = anywhere if network != anywhere["ssh_from"] else {}
    account = deployed(family="p5", nodes="4", endpoints="private", **recorded)
    rule = {"Type": "AWS::EC2::SecurityGroupIngress", "Properties": {"FromPort": 22, "CidrIp": network}}
    own = account.answers["GetTemplate"]

    def template(asked: dict[str, Any]) -> Any:
        found = json.loads(own(asked)["TemplateBody"])
        if asked["StackName"] == "TrainingCluster-Network" and network:
            found["Resources"]["SshIn"] = rule
        return {"TemplateBody": json.dumps(found)}

    account.answers["GetTemplate"] = template
    found = read_flags("training", account.client)
    assert found is not None
    kept = deploy_command("training", found).removeprefix("npx cdk deploy TrainingClusterStack ")
    assert kept.split(" -c ")[0] == "-c family=p5"
    flags = set(kept.split(" -c "))
    assert {"endpoints=private", "nodes=4"} <= flags
    assert {flag for flag in flags if flag.startswith("ssh_from")} == ssh


def test_flags_of_replaced_file_systems_are_left_out() -> None:
    adopted = {"efs_id": {"value": "fs-0123456789abcdef0"}}
    guard = {"Type": "Custom::Guard", "Properties": {"Values": adopted}}
    own = {"Metadata": {GIVEN_FLAGS: {"family": "p5", "efs_mibps": 100}}}
    found = flags_of({"own": own, STORAGE_STACK: {"Resources": {"Values": guard}}}, "own")
    assert found == {"family": "p5", "efs_id": "fs-0123456789abcdef0"}


def test_no_answer_leaves_flags_unknown() -> None:
    assert flags_or_none("training", Account({"GetTemplate": Refused("AccessDenied")}).client) is None
    missing = Account({"GetTemplate": Refused("ValidationError", "Stack with id a does not exist")})
    assert flags_or_none("training", missing.client) == {}
