"""The deploys that trainctl prints and runs keep the flags of the last deploy."""

from __future__ import annotations

import ast
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ops.account.deploy_command import deploy_command, deploy_words
from ops.account.deployed_flags import flags_or_none, read_flags
from tests.unit.ops.fake_account import Account, Refused
from tests.unit.ops.plan.plan_account import deployed
from training_cluster.paths import ROOT

RECORDED = {"family": "p5", "nodes": 16, "tags": "team=my team", "on_busy": "stop", "metrics": "cloudwatch"}
ANY_DEPLOY = re.compile(r"cdk deploy(?: $| [A-Z{])")


def test_changed_flags_replace_recorded_ones() -> None:
    words = deploy_words("training", RECORDED, nodes=4, users="users.yaml")
    flags = ["family=p5", "tags=team=my team", "nodes=4", "users=users.yaml"]
    assert words[4:] == [word for flag in flags for word in ("-c", flag)]
    assert shlex.split(deploy_command("training", RECORDED, nodes=4, users="users.yaml")) == words


def test_another_cluster_is_named() -> None:
    start = "npx cdk deploy TrainingClusterStack -c family=p5 -c cluster_name="
    assert deploy_command("b", {"family": "p5", "cluster_name": "b"}) == f"{start}b"
    assert deploy_command("b", {"family": "p5", "cluster_name": "b"}, cluster_name="b-2") == f"{start}b-2"


def test_unknown_flags_are_mentioned() -> None:
    command = "npx cdk deploy TrainingClusterStack"
    assert deploy_command("training", None, nodes=4) == f"{command} -c nodes=4, with its flags"
    assert deploy_command("training", {}) == command


def test_flags_of_shared_stacks_are_the_deployed_ones() -> None:
    account = deployed(family="p5", nodes="4", endpoints="private")
    network = {
        "Type": "AWS::EC2::SecurityGroupIngress",
        "Properties": {"FromPort": 22, "CidrIp": "203.0.113.0/24"},
    }
    own = account.answers["GetTemplate"]

    def template(asked: dict[str, Any]) -> Any:
        found = json.loads(own(asked)["TemplateBody"])
        if asked["StackName"] == "TrainingCluster-Network":
            found["Resources"]["SshIn"] = network
        return {"TemplateBody": json.dumps(found)}

    account.answers["GetTemplate"] = template
    found = read_flags("training", account.client)
    assert found is not None
    kept = deploy_command("training", found).removeprefix("npx cdk deploy TrainingClusterStack ")
    assert kept.split(" -c ")[0] == "-c family=p5"
    assert {"endpoints=private", "ssh_from=203.0.113.0/24", "nodes=4"} <= set(kept.split(" -c "))


def test_no_answer_leaves_flags_unknown() -> None:
    assert flags_or_none("training", Account({"GetTemplate": Refused("AccessDenied")}).client) is None
    missing = Account({"GetTemplate": Refused("ValidationError", "Stack with id a does not exist")})
    assert flags_or_none("training", missing.client) == {}


def _printed(path: Path) -> Iterator[str]:
    """Yield the texts of a module that are no docstrings, and the words of its commands."""
    tree = ast.parse(path.read_text())
    docstrings = {id(each.value) for each in ast.walk(tree) if isinstance(each, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value
        if isinstance(node, ast.List | ast.Tuple):
            words = [each.value for each in node.elts if isinstance(each, ast.Constant)]
            yield "".join(f"{word} " for word in words if isinstance(word, str))


def test_every_deploy_is_written_by_one_module() -> None:
    texts = [
        (path, text)
        for path in (ROOT / "ops").rglob("*.py")
        if path.name != "deploy_command.py"
        for text in _printed(path)
    ]
    texts += [
        (path, line) for path in (ROOT / "ops").rglob("*.yaml") for line in path.read_text().splitlines()
    ]
    assert len(texts) > 1000
    assert [(path.name, text) for path, text in texts if ANY_DEPLOY.search(text)] == []
