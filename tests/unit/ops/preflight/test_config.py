"""`trainctl preflight --dry-run`: ParallelCluster's real validators, with ids that exist."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ops.pcluster.dry_run import DryRun, Message
from ops.preflight.config import check_validators
from ops.preflight.existing_network import read_existing_network
from ops.preflight.finding import Finding
from tests.unit.ops.own_account import OwnAccount
from tests.unit.ops.plan.policy_flags import POLICY_FLAGS, placeholders_in
from tests.unit.ops.preflight.test_checks import ACCOUNT
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER

NEW = DryRun(exists=False)
ANYTHING = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
PLACEMENT_GROUP = {
    "PlacementGroup68E91A0F": {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}}
}


def _policies(*names: str) -> dict[str, Any]:
    return {
        f"{name}7EE66815": {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {"ManagedPolicyName": name, "PolicyDocument": ANYTHING},
        }
        for name in names
    }


def _arn(policy: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:policy/{policy}"


@pytest.fixture
def deployed(own: OwnAccount) -> OwnAccount:
    """An account with NetworkStack and StorageStack."""
    own.deploy_network()
    own.deploy_storage()
    return own


def _deploy_cluster(own: OwnAccount, resources: dict[str, Any]) -> None:
    own.deploy("TrainingClusterStack", resources=resources, HeadNodeInstanceId="i-1")


def _asked(
    own: OwnAccount, said: DryRun = NEW, **flags: str
) -> tuple[list[Finding], list[Mapping[str, Any]]]:
    """The lines, and the configs that the library was asked about."""
    settings = read_settings(flags)
    configs: list[Mapping[str, Any]] = []

    def judge(name: str, config: Mapping[str, Any]) -> DryRun:
        assert name == settings.cluster_name
        configs.append(config)
        return said

    existing = read_existing_network(settings, own.client)
    return list(check_validators(settings, existing, own.client, judge)), configs


def test_it_says_to_deploy_network_and_storage_first(own: OwnAccount) -> None:
    (warning,), configs = _asked(own)
    assert (warning.verdict, configs) == ("warning", [])
    assert warning.mend.startswith("npx cdk deploy NetworkStack StorageStack -c family=p4d, then")
    own.deploy_network()
    own.deploy_storage()
    (warning,), _ = _asked(own, accounting="new")
    assert warning.mend.startswith("npx cdk deploy AccountingStack -c family=p4d -c accounting=new, then")


def test_the_config_has_only_ids_that_already_exist(deployed: OwnAccount) -> None:
    (fine,), (config,) = _asked(deployed, login_nodes="1")
    assert (fine.verdict, fine.found) == ("ok", "accept a new cluster")
    text, queue = json.dumps(config), config["Scheduling"]["SlurmQueues"][0]
    networking = {"SubnetId": deployed.network.public, "SecurityGroups": [deployed.nodes]}
    assert config["HeadNode"]["Networking"] == networking
    assert queue["Networking"]["SubnetIds"] == [deployed.network.private]
    assert {deployed.lustre} <= {
        each.get("FsxLustreSettings", {}).get("FileSystemId") for each in config["SharedStorage"]
    }
    assert queue["Networking"]["PlacementGroup"] == {"Enabled": True}
    assert "Ssh" not in config["HeadNode"]
    for made_with_the_cluster in ("CustomActions", "AdditionalIamPolicies", "aaaaaaaa-key", "0ccccccc"):
        assert made_with_the_cluster not in text
    _, (config,) = _asked(deployed, key_name="mine")
    assert config["HeadNode"]["Ssh"] == {"KeyName": "mine"}


def test_an_existing_cluster_keeps_its_policies_and_scripts(deployed: OwnAccount) -> None:
    _deploy_cluster(deployed, _policies("NodesPolicy") | PLACEMENT_GROUP)
    (group,) = (
        each["PhysicalResourceId"]
        for each in deployed.client("cloudformation").list_stack_resources(StackName="TrainingClusterStack")[
            "StackResourceSummaries"
        ]
        if each["ResourceType"] == "AWS::EC2::PlacementGroup"
    )
    _, (config,) = _asked(deployed)
    assert config["HeadNode"]["Iam"]["AdditionalIamPolicies"] == [{"Policy": _arn("NodesPolicy")}]
    assert config["HeadNode"]["Ssh"] == {"KeyName": f"{DEFAULT_CLUSTER}-key"}
    (queue,) = config["Scheduling"]["SlurmQueues"]
    assert queue["Networking"]["PlacementGroup"] == {"Enabled": True, "Name": group}
    assert "CustomActions" in queue


def test_resources_an_update_would_make_are_left_out(deployed: OwnAccount) -> None:
    _deploy_cluster(deployed, _policies("NodesPolicy"))
    _, (config,) = _asked(deployed, login_nodes="1")
    (queue,), (pool,) = config["Scheduling"]["SlurmQueues"], config["LoginNodes"]["Pools"]
    assert queue["Networking"]["PlacementGroup"] == {"Enabled": True}
    for node in (queue, pool):
        assert node["Iam"]["AdditionalIamPolicies"] == [{"Policy": _arn("NodesPolicy")}]


@pytest.mark.parametrize("exists", [True, False], ids=["cluster", "none"])
def test_validators_get_no_placeholder(deployed: OwnAccount, *, exists: bool) -> None:
    if exists:
        _deploy_cluster(deployed, _policies("NodesPolicy", "MetricsPolicy"))
    for flags in POLICY_FLAGS:
        _, (config,) = _asked(deployed, NEW, **flags)
        text = json.dumps(config)
        assert placeholders_in(text) == []
        is_there = exists and read_settings(flags).head_node_sends
        assert (_arn("MetricsPolicy") in text) == is_there, flags


def test_each_validator_that_objects_gets_a_line(deployed: OwnAccount) -> None:
    said = DryRun(
        exists=False,
        messages=(
            Message(level="ERROR", validator="SubnetsValidator", text="no such subnet"),
            Message(level="WARNING", validator="FsxValidator", text="slow"),
            Message(level="INFO", validator="Note", text="by the way"),
        ),
    )
    found, _ = _asked(deployed, said)
    assert [(each.check, each.verdict) for each in found] == [
        ("ParallelCluster: SubnetsValidator", "problem"),
        ("ParallelCluster: FsxValidator", "warning"),
        ("ParallelCluster: Note", "ok"),
    ]
    assert [bool(each.mend) for each in found] == [True, False, False]


def test_checks_denied_to_the_caller_are_a_warning(deployed: OwnAccount) -> None:
    text = "User: x is not authorized to perform: iam:GetPolicy on resource: y"
    refused = Message(level="ERROR", validator="IamPolicyValidator", text=text)
    (warning,), _ = _asked(deployed, DryRun(exists=False, messages=(refused,)))
    assert (warning.verdict, warning.found) == ("warning", f"not checked: {text}")


def test_a_key_the_first_deploy_makes_is_ok(deployed: OwnAccount) -> None:
    missed = Message(level="WARNING", validator="KeyPairValidator", text="no key pair")
    (fine,), _ = _asked(deployed, DryRun(exists=False, messages=(missed,)))
    assert fine.verdict == "ok"
    (warning,), _ = _asked(deployed, DryRun(exists=True, messages=(missed,)))
    assert warning.verdict == "warning"


def test_a_change_the_cluster_refuses_is_a_warning(deployed: OwnAccount) -> None:
    (warning,), _ = _asked(deployed, DryRun(exists=True, refused_changes={"MaxCount": "stop the fleet"}))
    assert (warning.check, warning.verdict) == ("ParallelCluster: MaxCount", "warning")
    assert warning.found == "stop the fleet"


def test_a_cluster_during_an_update_is_not_judged(deployed: OwnAccount) -> None:
    (warning,), _ = _asked(deployed, DryRun(exists=True, refusal="UPDATE_IN_PROGRESS"))
    assert (warning.verdict, warning.found) == ("warning", "not checked: UPDATE_IN_PROGRESS")
