"""Roles of nodes that the user makes, and more security groups beside ours."""

from tests.unit.training_cluster.overrides.conftest import Write
from training_cluster.overrides.nodes import own_roles
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
    assert own_roles(config_before_deploy(read_settings({}))) == ()


def test_more_groups_are_listed_after_ours(write: Write) -> None:
    name = write(
        "HeadNode: {Networking: {AdditionalSecurityGroups: [sg-0123456789abcdef0]}}\n"
        "Scheduling: {SlurmQueues: [{Name: gpu, Networking: "
        "{AdditionalSecurityGroups: [sg-0123456789abcdef1]}}]}\n"
    )
    config, plain = (
        config_before_deploy(read_settings(flags)) for flags in ({"overrides": name}, dict[str, str]())
    )
    ours = plain["HeadNode"]["Networking"]["SecurityGroups"]
    assert config["HeadNode"]["Networking"] == {
        **plain["HeadNode"]["Networking"],
        "SecurityGroups": [*ours, "sg-0123456789abcdef0"],
    }
    queue = config["Scheduling"]["SlurmQueues"][0]["Networking"]
    assert queue["SecurityGroups"] == [*ours, "sg-0123456789abcdef1"]
    assert "AdditionalSecurityGroups" not in queue
