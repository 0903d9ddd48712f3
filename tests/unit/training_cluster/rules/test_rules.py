"""Flags that do not go together, and what a person reads then; advice about those that do."""

from __future__ import annotations

import pytest

from tests.unit.assets.cluster_image.image_fakes import VERSION
from training_cluster.advice.advice import advice
from training_cluster.catalog.families import family_names
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

CR = "cr-0123456789abcdef0"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf"
NETWORK = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
}


def settings(**flags: str) -> Settings:
    return read_settings(flags)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"min_nodes": "3"}, ["min_nodes=3 is more than nodes=2", "-c nodes=3"]),
        ({"budget_usd": "5000"}, ["nobody would be told", "-c budget_usd=5000 -c alarm_email="]),
        (
            {"instance_type": "p5.48xlarge"},
            ["instance_type=p5.48xlarge: family p4d has p4d.24xlarge", "-c family=p5 -c instance_type=p5"],
        ),
        ({"family": "g5", "instance_type": "g5.48xlarg"}, ['Did you mean "g5.48xlarge"?']),
        (
            {"family": "hpc7a", "capacity": "spot"},
            ["EC2 does not sell hpc7a.96xlarge so", "-c capacity=ondemand"],
        ),
        ({"family": "g5", "capacity": f"capacity-block:{CR}"}, ["does not sell g5.48xlarge", "reservation"]),
        (
            {"family": "trn1", "instance_type": "trn1.2xlarge", "capacity": f"capacity-block:{CR}"},
            ["does not sell trn1.2xlarge"],
        ),
        (
            {"capacity": f"capacity-block:{CR}", "nodes": "4", "min_nodes": "1"},
            ["all nodes of a Capacity Block run", "-c min_nodes=4"],
        ),
        (
            {"capacity": f"capacity-block:{CR}", "placement_group": "mine"},
            ["placement_group=mine", "-c placement_group=off"],
        ),
        (
            {"family": "p3dn", "image": "official"},
            ["image=official does not run on p3dn", "do not support Volta", "-c image=build"],
        ),
        (
            {"family": "m6i", "cpu_queue": "on"},
            ["the nodes of m6i are the queue cpu already", "-c cpu_queue=off"],
        ),
        (
            {"cpu_queue": "p5.48xlarge"},
            ["no instance type of a family without accelerators", "-c cpu_queue=on"],
        ),
        ({"cpu_queue": "m6i.99xlarge"}, ["no instance type of a family without accelerators"]),
        (
            {"accounting": "db.example.com"},
            ["the password of your database is missing", "accounting_secret="],
        ),
        ({"accounting_secret": SECRET}, ["accounting_secret is for a database of yours", "accounting=off"]),
        ({"accounting": "new", "accounting_user": "me"}, ["accounting_user is for a database of yours"]),
        ({"accounting": "new", **NETWORK}, ["two more subnets", "-c accounting=HOST:3306"]),
        (
            {"accounting": "new", "cluster_name": "a" * 41},
            ["41 characters", "ParallelCluster takes 40", f"-c cluster_name={'a' * 40}"],
        ),
        ({"vpc_id": NETWORK["vpc_id"]}, ["but not public_subnet_id and private_subnet_id", "comes whole"]),
        ({"security_group_id": "sg-0123456789abcdef0"}, ["security_group_id is given", "vpc_id"]),
        ({**NETWORK, "zone": "use1-az4"}, ["the zone is that of vpc_id", "leave zone out"]),
        (
            {**NETWORK, "private_subnet_id": NETWORK["public_subnet_id"]},
            ["are both subnet-0123456789abcdef0", "-c private_subnet_id="],
        ),
        ({**NETWORK, "endpoints": "private"}, ["your own is used unchanged", "-c endpoints=none"]),
        (
            {**NETWORK, "security_group_id": "sg-0123456789abcdef0", "ssh_from": "203.0.113.0/24"},
            ["ssh_from=203.0.113.0/24 adds a rule", "leave ssh_from out"],
        ),
        ({"ssh_from": "0.0.0.0/0"}, ["opens port 22 to the internet", "-c ssh_from_anywhere=yes"]),
        ({"ssh_from": "0.0.0.0/1"}, ["opens port 22 to the internet"]),
        ({"placement_group": "on"}, ["the name of an existing group", "-c placement_group=auto"]),
        ({"ssh_from_anywhere": "yes"}, ["says nothing without ssh_from"]),
        (
            {"fsx_id": "fs-0123456789abcdef0", "fsx_gib": "2400", "fsx_type": "scratch2"},
            ["fsx_type and fsx_gib are for a new file system", "leave fsx_type and fsx_gib out"],
        ),
        ({"efs_id": "fs-0123456789abcdef0", "efs_mibps": "9"}, ["efs_mibps is for a new file system"]),
        ({"fsx_type": "scratch2", "fsx_mbps_per_tib": "500"}, ["fsx_mbps_per_tib is for persistent2"]),
        (
            {"head_node_type": "m6i.xlarge", "nodes": "1", "family": "g5", "instance_type": "g5.50xlarge"},
            ["g5.50xlarge"],
        ),
    ],
)
def test_what_contradicts_is_refused_with_the_mend(flags: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigurationError) as raised:
        settings(**flags)
    for word in words:
        assert word in str(raised.value)


def test_a_head_node_without_the_memory_is_refused_as_parallelcluster_would() -> None:
    """Its HeadNodeMemorySizeValidator: nodes / 25 + 0.6 GiB, at most 16."""
    assert settings(head_node_type="m6i.large", nodes="185")
    with pytest.raises(
        ConfigurationError, match=r"(?s)8 GiB of memory.*take 8.04.*-c head_node_type=m6i.xlarge"
    ):
        settings(head_node_type="m6i.large", nodes="186")
    assert settings(head_node_type="m6i.xlarge", nodes="4000")
    with pytest.raises(ConfigurationError, match=r"186 nodes take"):
        settings(head_node_type="m6i.large", nodes="182", cpu_queue="on")


def test_all_contradictions_are_told_at_once() -> None:
    with pytest.raises(ConfigurationError, match=r"^3 problems"):
        settings(min_nodes="3", accounting="db.example.com", vpc_id=NETWORK["vpc_id"])


def test_a_capacity_block_runs_all_its_nodes_without_being_told() -> None:
    assert settings(capacity=f"capacity-block:{CR}", nodes="4").static_nodes == 4
    assert settings(capacity=f"capacity-block:{CR}", nodes="4", min_nodes="4").static_nodes == 4
    assert settings(nodes="4").static_nodes == 0


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ({}, True),
        ({"capacity": "spot"}, True),
        ({"capacity": f"reservation:{CR}"}, False),
        ({"capacity": f"capacity-block:{CR}"}, False),
        ({"placement_group": "off"}, False),
        ({"placement_group": "mine"}, False),
        ({"family": "m6i"}, False),
        ({"family": "m6i", "instance_type": "m6i.32xlarge"}, True),
    ],
)
def test_capacity_and_efa_decide_the_placement_group(flags: dict[str, str], wanted: bool) -> None:
    assert settings(**flags).wants_new_placement_group is wanted


def _advice(**flags: str) -> dict[str, str]:
    return {each.id: each.text for each in advice(settings(**flags))}


def test_trainium_runs_on_the_system_that_neuron_is_made_for_and_another_is_a_warning() -> None:
    assert settings(family="trn1").os_name == "ubuntu2404"
    assert settings(family="p4d").os_name == "ubuntu2204"
    assert "neuron-system" not in _advice(family="trn1")
    assert "-c os=ubuntu2404" in _advice(family="trn1", os="ubuntu2204")["neuron-system"]


def test_a_head_node_that_is_small_for_the_nodes_is_a_warning_and_never_a_change() -> None:
    small = settings(nodes="600")
    (found,) = [each for each in advice(small) if each.id == "head-node-small"]
    assert found.warns
    assert "c5.4xlarge (16 vCPUs) is small for 600 nodes" in found.text
    assert "-c head_node_type=m6i.8xlarge" in found.text
    assert small.head_type == "c5.4xlarge"
    assert "head-node-small" not in _advice(nodes="600", head_node_type="m6i.8xlarge")
    assert "was not checked" in _advice(head_node_type="x2idn.16xlarge")["head-node-unknown"]


def test_every_family_has_a_head_node_for_every_number_of_nodes() -> None:
    for family in family_names():
        assert advice(settings(family=family, nodes="4096")) is not None


def test_p3dn_says_which_image_it_takes_and_why() -> None:
    said = _advice(family="p3dn")["image-build"]
    for word in (
        "recipe volta",
        "do not support Volta",
        "580",
        "12.6",
        f"/imagebuilder/training-cluster/{PCLUSTER_VERSION}/ubuntu2204/volta",
        f"TrainingCluster-Image-volta-ubuntu2204-{VERSION} builds it",
    ):
        assert word in said
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


def test_login_nodes_that_nobody_reaches_say_so() -> None:
    assert "-c ssh_from=" in _advice(login_nodes="2")["login-nodes-closed"]
    assert "login-nodes-closed" not in _advice(login_nodes="2", ssh_from="203.0.113.0/24")


def test_a_family_of_a_newer_parallelcluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training_cluster.rules.cluster.PCLUSTER_VERSION", "3.14.0")
    with pytest.raises(ConfigurationError, match=r"p6-b300 needs ParallelCluster 3\.15\.0"):
        settings(family="p6-b300")
    assert settings(family="p6-b200")


def test_provisioned_throughput_says_what_it_costs() -> None:
    assert "6,144 USD a month" in _advice(efs_mibps="1024")["efs-provisioned"]
    assert "efs-provisioned" not in _advice()


def test_a_file_system_that_is_not_durable_says_so() -> None:
    assert "not durable" in _advice(fsx_type="scratch2")["lustre-scratch"]
    assert "lustre-scratch" not in _advice()


def test_nodes_that_always_run_say_what_they_cost() -> None:
    assert "43.92 USD an hour" in _advice(min_nodes="2")["static-nodes"]
    assert "spot capacity" in _advice(min_nodes="2", capacity="spot")["spot-static"]
    command = "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com"
    assert command in _advice(capacity="spot")["spot-role"]
    assert "spot-role" not in _advice()
