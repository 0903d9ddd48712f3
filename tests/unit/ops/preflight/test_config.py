"""`trainctl preflight --dry-run`: ParallelCluster's real validators, with ids that exist."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ops.pcluster.dry_run import Change, DryRun, Message
from ops.preflight.config import check_validators
from ops.preflight.existing_network import read_existing_network
from ops.preflight.finding import Finding
from tests.unit.ops.plan.policy_flags import POLICY_FLAGS, placeholders_in
from tests.unit.ops.preflight.preflight_network import GROUP, PRIVATE, PUBLIC, VPC, Network
from training_cluster.rules.context import read_settings

STORAGE = {"BucketName": "training-bucket", "FileSystemId": "fs-1", "EfsId": "fs-2"}
NEW = DryRun(exists=False)


def _deployed() -> Network:
    network = Network()
    network.network_stack = {"VpcId": VPC, "PublicSubnetId": PUBLIC, "PrivateSubnetId": PRIVATE}
    network.network_stack["NodeSecurityGroupId"] = GROUP
    network.storage_stack = dict(STORAGE)
    return network


def _asked(
    network: Network, said: DryRun = NEW, **flags: str
) -> tuple[list[Finding], list[Mapping[str, Any]]]:
    """The lines, and the configs that the library was asked about."""
    settings, client = read_settings(flags), network.account().client
    configs: list[Mapping[str, Any]] = []

    def judge(name: str, config: Mapping[str, Any]) -> DryRun:
        assert name == settings.cluster_name
        configs.append(config)
        return said

    return list(check_validators(settings, read_existing_network(settings, client), client, judge)), configs


def test_it_says_to_deploy_network_and_storage_first() -> None:
    (warning,), configs = _asked(Network())
    assert (warning.verdict, configs) == ("warning", [])
    assert warning.mend.startswith("npx cdk deploy NetworkStack StorageStack -c family=p4d, then")
    (warning,), _ = _asked(_deployed(), accounting="new")
    assert warning.mend.startswith("npx cdk deploy AccountingStack -c family=p4d -c accounting=new, then")


def test_the_config_has_only_ids_that_already_exist() -> None:
    (fine,), (config,) = _asked(_deployed(), login_nodes="1")
    assert (fine.verdict, fine.found) == ("ok", "accept a new cluster")
    text, queue = json.dumps(config), config["Scheduling"]["SlurmQueues"][0]
    assert config["HeadNode"]["Networking"] == {"SubnetId": PUBLIC, "SecurityGroups": [GROUP]}
    assert queue["Networking"]["SubnetIds"] == [PRIVATE]
    assert {STORAGE["FileSystemId"]} <= {
        each.get("FsxLustreSettings", {}).get("FileSystemId") for each in config["SharedStorage"]
    }
    assert queue["Networking"]["PlacementGroup"] == {"Enabled": True}
    assert "Ssh" not in config["HeadNode"]
    for made_with_the_cluster in ("CustomActions", "AdditionalIamPolicies", "aaaaaaaa-key", "0ccccccc"):
        assert made_with_the_cluster not in text


def test_a_given_key_name_is_in_the_config() -> None:
    _, (config,) = _asked(_deployed(), key_name="mine")
    assert config["HeadNode"]["Ssh"] == {"KeyName": "mine"}


def test_an_existing_cluster_keeps_its_policies_and_scripts() -> None:
    network = _deployed()
    network.cluster_resources = {
        "NodesPolicy7EE66815": ("AWS::IAM::ManagedPolicy", "arn:aws:iam::1:policy/p"),
        "PlacementGroup68E91A0F": ("AWS::EC2::PlacementGroup", "group-1"),
    }
    _, (config,) = _asked(network)
    assert config["HeadNode"]["Iam"]["AdditionalIamPolicies"] == [{"Policy": "arn:aws:iam::1:policy/p"}]
    assert config["HeadNode"]["Ssh"] == {"KeyName": "training-key"}
    (queue,) = config["Scheduling"]["SlurmQueues"]
    assert queue["Networking"]["PlacementGroup"] == {"Enabled": True, "Name": "group-1"}
    assert "CustomActions" in queue


def test_resources_an_update_would_make_are_left_out() -> None:
    network = _deployed()
    network.cluster_resources = {
        "NodesPolicy7EE66815": ("AWS::IAM::ManagedPolicy", "arn:aws:iam::1:policy/p")
    }
    _, (config,) = _asked(network, login_nodes="1")
    (queue,), (pool,) = config["Scheduling"]["SlurmQueues"], config["LoginNodes"]["Pools"]
    assert queue["Networking"]["PlacementGroup"] == {"Enabled": True}
    for node in (queue, pool):
        assert node["Iam"]["AdditionalIamPolicies"] == [{"Policy": "arn:aws:iam::1:policy/p"}]


@pytest.mark.parametrize("exists", [True, False], ids=["cluster", "none"])
@pytest.mark.parametrize("flags", POLICY_FLAGS, ids=str)
def test_validators_get_no_placeholder(flags: dict[str, Any], *, exists: bool) -> None:
    network = _deployed()
    if exists:
        policies = {"NodesPolicy7EE66815": "arn:n", "MetricsPolicy7EE66815": "arn:m"}
        network.cluster_resources = {id_: ("AWS::IAM::ManagedPolicy", arn) for id_, arn in policies.items()}
    _, (config,) = _asked(network, **flags)
    text = json.dumps(config)
    assert placeholders_in(text) == []
    assert ('"arn:m"' in text) == (exists and read_settings(flags).head_node_sends)


def test_each_validator_that_objects_gets_a_line() -> None:
    said = DryRun(
        exists=False,
        messages=(
            Message(level="ERROR", validator="SubnetsValidator", text="no such subnet"),
            Message(level="WARNING", validator="FsxValidator", text="slow"),
            Message(level="INFO", validator="Note", text="by the way"),
        ),
    )
    found, _ = _asked(_deployed(), said)
    assert [(each.check, each.verdict) for each in found] == [
        ("ParallelCluster: SubnetsValidator", "problem"),
        ("ParallelCluster: FsxValidator", "warning"),
        ("ParallelCluster: Note", "ok"),
    ]
    assert [bool(each.mend) for each in found] == [True, False, False]


def test_checks_denied_to_the_caller_are_a_warning() -> None:
    text = "User: x is not authorized to perform: iam:GetPolicy on resource: y"
    refused = Message(level="ERROR", validator="IamPolicyValidator", text=text)
    (warning,), _ = _asked(_deployed(), DryRun(exists=False, messages=(refused,)))
    assert (warning.verdict, warning.found) == ("warning", f"not checked: {text}")


def test_a_key_the_first_deploy_makes_is_ok() -> None:
    missed = Message(level="WARNING", validator="KeyPairValidator", text="no key pair")
    (fine,), _ = _asked(_deployed(), DryRun(exists=False, messages=(missed,)))
    assert fine.verdict == "ok"
    (warning,), _ = _asked(_deployed(), DryRun(exists=True, messages=(missed,)))
    assert warning.verdict == "warning"


def test_a_change_the_cluster_refuses_is_a_warning() -> None:
    change = Change(parameter="MaxCount", old="4", new="2", policy="RESIZE", refusal="stop the fleet")
    (warning,), _ = _asked(_deployed(), DryRun(exists=True, changes=(change,)))
    assert (warning.check, warning.verdict) == ("ParallelCluster: MaxCount", "warning")
    assert warning.found == "stop the fleet"


def test_a_cluster_during_an_update_is_not_judged() -> None:
    (warning,), _ = _asked(_deployed(), DryRun(exists=True, refusal="UPDATE_IN_PROGRESS"))
    assert (warning.verdict, warning.found) == ("warning", "not checked: UPDATE_IN_PROGRESS")
