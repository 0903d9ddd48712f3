"""Advice about flags that are allowed and work badly, or cost more than a person expects."""

from pathlib import Path

from tests.unit.sentences import assert_sentences
from training_cluster.advice.advice import Advice, advice
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings


def settings(**flags: str) -> Settings:
    return read_settings(flags)


def _all(**flags: str) -> list[Advice]:
    given = settings(**flags)
    return advice(given, config_before_deploy(given))


def _advice(**flags: str) -> dict[str, str]:
    return {each.id: each.text for each in _all(**flags)}


FLAGS = """
family=trn1
family=trn1 os=ubuntu2204
family=trn1n
family=trn2
nodes=1000
family=m6i nodes=1000
metrics=prometheus
metrics=prometheus image=build
nodes=1000 head_node_type=m6i.8xlarge
nodes=4096 cpu_queue=on home=efs fsx_id=fs-0123456789abcdef0
family=p5 nodes=1250
family=p5 nodes=1250 fsx_id=fs-0123456789abcdef0
fsx_gib=4800 fsx_mbps_per_tib=500
head_node_type=x9.16xlarge
family=p3dn
family=p3dn image=ami-0123456789abcdef0
family=trn1 zone=use1-az5
family=trn1 zone=use1-az1
family=trn1 zone=euw1-az1
family=hpc7a zone=us-east-1a
family=hpc7a zone=us-east-2b
family=p5 cpu_queue=hpc7a.96xlarge zone=us-east-1a
family=m6i zone=us-east-1a
fsx_type=scratch2
login_nodes=2
login_nodes=2 ssh_from=203.0.113.0/24
min_nodes=2
min_nodes=2 capacity=spot
nodes=16
family=p5 nodes=16 capacity=capacity-block:cr-0123456789abcdef0
"""


def test_flags_that_work_badly_have_their_advice() -> None:
    """In addition to what any cluster is told; idle costs have tests of their own."""
    usual = {each for each in _all() if each.id != "idle-cost"}

    def read(flags: str) -> str:
        found = [
            each for each in _all(**dict(each.split("=") for each in flags.split())) if each not in usual
        ]
        told = [each for each in found if each.id != "idle-cost"]
        return "\n".join(f"{'warning' if each.warns else 'note'} {each.id}: {each.text}" for each in told)

    assert_sentences("advice", FLAGS.strip().splitlines(), read)
    assert not {"lustre-scratch", "login-nodes-closed", "spot-role"} & {each.id for each in usual}


def test_no_head_node_serves_two_large_queues(tmp_path: Path) -> None:
    file = tmp_path / "queues.yaml"
    file.write_text("".join(f"{name}: {{instance_types: m6i.large, nodes: 4000}}\n" for name in "ab"))
    assert "No type of the catalog suffices" in _advice(queues=str(file))["head-node-small"]


def test_overrides_without_effect_are_told(tmp_path: Path) -> None:
    def told(text: str, **flags: str) -> dict[str, str]:
        file = tmp_path / "overrides.yaml"
        file.write_text(text)
        return _advice(overrides=str(file), **flags)

    role, policy = "arn:aws:iam::123456789012:role/mine", "arn:aws:iam::123456789012:policy/team"
    own_role = told(f"HeadNode: {{Iam: {{InstanceRole: '{role}'}}}}", node_policies=policy)["own-role-mine"]
    assert own_role.endswith(f"aws iam attach-role-policy --role-name mine --policy-arn {policy}")
    assert "own-role-mine" not in told(f"HeadNode: {{Iam: {{InstanceRole: '{role}'}}}}")
    dcv = "HeadNode: {Dcv: {Enabled: true, Port: 8444%s}%s}"
    closed = told(dcv % (", AllowedIps: 10.0.0.0/8", ""))
    assert "port 8444 is closed" in closed["dcv-closed-HeadNode"]
    assert "no-effect-HeadNode-Dcv" in closed
    group = ", Networking: {AdditionalSecurityGroups: [sg-0123456789abcdef0]}"
    assert "dcv-closed-HeadNode" not in told(dcv % ("", group))
