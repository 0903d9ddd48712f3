"""Nodes' roles that the user makes: our policies are attached to them, and are not in the config."""

from __future__ import annotations

from tests.unit.training_cluster.overrides.conftest import Write
from training_cluster.overrides.roles import own_roles
from training_cluster.pcluster.check import check_cluster_config, config_before_deploy
from training_cluster.rules.context import read_settings

HEAD, NODES = (f"arn:aws:iam::123456789012:role/{name}" for name in ("head", "nodes"))


def test_a_role_stands_alone_where_it_is_given(write: Write) -> None:
    name = write(
        f"HeadNode: {{Iam: {{InstanceRole: '{HEAD}'}}}}\n"
        f"Scheduling: {{SlurmQueues: [{{Name: gpu, Iam: {{InstanceRole: '{NODES}'}}}}]}}\n"
    )
    settings = read_settings({"overrides": name, "login_nodes": "1"})
    config = config_before_deploy(settings)
    check_cluster_config(config, settings)
    assert config["HeadNode"]["Iam"] == {"InstanceRole": HEAD}
    assert config["Scheduling"]["SlurmQueues"][0]["Iam"] == {"InstanceRole": NODES}
    assert config["LoginNodes"]["Pools"][0]["Iam"]["AdditionalIamPolicies"]
    assert own_roles(config) == (HEAD, NODES)


def test_without_one_no_role_is_found() -> None:
    assert own_roles(config_before_deploy(read_settings({}))) == ()
