"""Advice about flags that are allowed and work badly, or cost more than a person expects."""

from pathlib import Path

from tests.unit.assets.cluster_image.image_fakes import VERSION
from training_cluster.advice.advice import Advice, advice
from training_cluster.flags.cluster import PCLUSTER_VERSION
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


def test_trainium_runs_on_the_system_of_neuron() -> None:
    assert "neuron-system" not in _advice(family="trn1")
    assert "-c os=ubuntu2404" in _advice(family="trn1", os="ubuntu2204")["neuron-system"]


def test_announcements_about_trainium_are_a_warning() -> None:
    for family in ("trn1", "trn1n", "trn2"):
        notice = _advice(family=family)["family-notice"]
        assert f"{family}: AWS no longer supports PyTorch/XLA for training" in notice
        assert "announce-no-support-pytorch-xla-training.html" in notice
    assert "family-notice" not in _advice(family="p4d")


def test_a_small_head_node_is_a_warning() -> None:
    (found,) = [each for each in _all(nodes="600") if each.id == "head-node-small"]
    assert found.warns
    assert "c5.4xlarge (16 vCPUs) is small for 600 nodes" in found.text
    assert "-c head_node_type=m6i.8xlarge" in found.text
    assert "head-node-small" not in _advice(nodes="600", head_node_type="m6i.8xlarge")
    assert "was not checked" in _advice(head_node_type="x9.16xlarge")["head-node-unknown"]


def test_storage_that_does_not_keep_up_warns() -> None:
    found = {each.id: each for each in _all(family="p5", nodes="1250")}
    assert found["lustre-small"].warns
    assert "1250 nodes train about 292 billion parameters in 30 days" in found["lustre-small"].text
    assert "the 1,200 GiB of Lustre have room for 0, and a run has up to 3" in found["lustre-small"].text
    assert "-c fsx_gib=40800 -c fsx_mbps_per_tib=1000" in found["lustre-small"].text
    assert "take 9.3 h at the 750 MB/s" in found["lustre-starts"].text
    assert "1250 nodes mount /home and /opt/slurm from the head node" in found["head-node-nfs"].text
    (slow,) = [each for each in _all() if each.id == "lustre-small"]
    assert not slow.warns, "a save of 5 minutes each 30"
    fast = _advice(fsx_gib="4800", fsx_mbps_per_tib="500")
    assert not {"lustre-small", "lustre-starts", "head-node-nfs"} & set(fast)
    assert "lustre-small" not in _advice(family="p5", nodes="1250", fsx_id="fs-0123456789abcdef0")


def test_p3dn_says_which_image_it_takes() -> None:
    said = _advice(family="p3dn")["image-build"]
    assert f"TrainingCluster-Image-volta-ubuntu2404-{VERSION} builds it" in said
    assert f"/imagebuilder/training-cluster/{PCLUSTER_VERSION}/ubuntu2404/volta" in said
    assert "image-build" not in _advice(family="p3dn", image="ami-0123456789abcdef0")


def test_zones_are_known_by_id() -> None:
    assert "-c zone=use1-az4" in _advice(family="trn1")["zone-auto"]
    assert "zone-unknown" not in _advice(family="trn1", zone="use1-az5")
    assert "in use1-az4, use1-az5, use1-az6" in _advice(family="trn1", zone="use1-az1")["zone-unknown"]
    assert "us-west-2" in _advice(family="trn1", zone="euw1-az1")["zone-unknown"]
    assert "us-east-2" in _advice(family="hpc7a", zone="us-east-1a")["zone-unknown"]
    assert "zone-unknown" not in _advice(family="hpc7a", zone="us-east-2b")
    assert "hpc7a" in _advice(family="p5", cpu_queue="hpc7a.96xlarge", zone="us-east-1a")["zone-unknown"]
    assert not [each for each in _advice(family="m6i", zone="us-east-1a") if "zone" in each]


def test_what_costs_or_is_lost_is_said() -> None:
    assert "EFS at 1024 MiB/s" in _advice(efs_mibps="1024")["idle-cost"]
    assert "not durable" in _advice(fsx_type="scratch2")["lustre-scratch"]
    assert "-c ssh_from=" in _advice(login_nodes="2")["login-nodes-closed"]
    assert "login-nodes-closed" not in _advice(login_nodes="2", ssh_from="203.0.113.0/24")
    assert not {"lustre-scratch", "login-nodes-closed"} & set(_advice())


def test_spot_nodes_say_what_they_take() -> None:
    assert "2 x p4d.24xlarge (min_nodes)" in _advice(min_nodes="2")["idle-cost"]
    assert "spot capacity" in _advice(min_nodes="2", capacity="spot")["spot-static"]
    command = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
    assert command in _advice(capacity="spot")["spot-role"]
    assert "spot-role" not in _advice()


def test_a_cluster_that_waits_for_nodes_warns() -> None:
    block = _advice(family="p5", nodes="16", capacity="capacity-block:cr-0123456789abcdef0")[
        "static-fleet-gpu"
    ]
    assert "waits for all 16 static nodes, and fails if one has not joined 45 minutes" in block
    assert "Deploy it with a few nodes of the block" in block
    assert "min_nodes=0" in _advice(min_nodes="2")["static-fleet-gpu"]
    assert not [each for each in _advice(nodes="16") if each.startswith("static-fleet")]


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
