"""Combinations of flags that are refused, and the message that a person reads."""

import pytest

from training_cluster.flags.settings import Settings
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings

CR = "cr-0123456789abcdef0"
SECRET = "arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf"
WORKSPACE = "arn:aws:aps:us-east-1:123456789012:workspace/ws-01234567-0123-4567-89ab-0123456789ab"
GROUP, FILES = "sg-0123456789abcdef0", "fs-0123456789abcdef0"
PUBLIC = "subnet-0123456789abcdef0"
NETWORK = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": PUBLIC,
    "private_subnet_id": "subnet-0123456789abcdef1",
}


VPC = " ".join(f"{flag}={id_}" for flag, id_ in NETWORK.items())
REFUSED = f"""
min_nodes=3 // min_nodes=3 is more than nodes=2 // -c nodes=3
budget_usd=5000 // alarm_email, which receives its emails, is missing // -c budget_usd=5000 -c alarm_email=
instance_type=trn3.48xlarge // cluster_configs/ has no such type; family p4d has
family=p4d instance_type=p5.48xlarge // family p4d has p4d.24xlarge // -c family=p5 -c instance_type=p5
family=hpc7a capacity=spot // EC2 does not sell hpc7a.96xlarge as spot // -c capacity=ondemand
capacity=capacity-block:{CR} nodes=4 min_nodes=1 // all nodes of a Capacity Block run // -c min_nodes=4
capacity=capacity-block:{CR} placement_group=mine // placement_group mine // -c placement_group=off
family=p3dn image=official // official image does not run on p3dn // do not support Volta // -c image=build
family=m6i cpu_queue=on // the queue cpu already has the nodes of m6i // -c cpu_queue=off
cpu_queue=p5.48xlarge // no instance type without accelerators // -c cpu_queue=on
family=p5 cpu_queue=c7g.4xlarge // c7g.4xlarge is arm64, and p5.48xlarge x86_64: a cluster has one arch
accounting=db.example.com // the password of your database is missing // accounting_secret=
accounting_secret={SECRET} // accounting_secret is for your own database // accounting=off
accounting=new {VPC} // two more subnets // -c accounting=HOST:3306
vpc_id=vpc-0123456789abcdef0 // but not public_subnet_id and private_subnet_id // needs all three
security_group_id={GROUP} // security_group_id is given // vpc_id
{VPC} zone=use1-az4 // the zone follows from vpc_id // leave zone out
{VPC} private_subnet_id={PUBLIC} // are both {PUBLIC} // -c private_subnet_id=
{VPC} endpoints=private // an existing VPC is not changed // -c endpoints=none
{VPC} security_group_id={GROUP} ssh_from=203.0.113.0/24 // adds a rule // leave ssh_from out
ssh_from=0.0.0.0/0 // opens port 22 to the internet // -c ssh_from_anywhere=yes
vpc_id=vpc-0123456789abcdef0 private_subnet_id={PUBLIC} // not public_subnet_id // or -c public_access=off
placement_group=yes // the name of an existing group // -c placement_group=on
ssh_from_anywhere=yes // has no effect without ssh_from
fsx_id={FILES} fsx_gib=2400 fsx_type=scratch2 // for a new file system // leave fsx_type and fsx_gib out
efs_id={FILES} efs_mibps=9 // efs_mibps is for a new file system
fsx_type=scratch2 fsx_mbps_per_tib=500 // fsx_mbps_per_tib is for persistent2
metrics=prometheus os=alinux2023 // no repository of Amazon Linux 2023
metrics=amp // metrics_workspace, which gets the metrics, is missing
metrics=prometheus metrics_workspace={WORKSPACE} // which sends nothing there
alert_webhook_secret={SECRET} // whose alarms go only to alarm_email
image=build compute_root_gib=149 // has 150 GiB // -c compute_root_gib=150
security_groups=sg-1 // "sg-1" is not the id of a security group // -c security_groups=
security_groups={GROUP},{GROUP} // is given twice
security_groups={GROUP}, // a word is empty
"""
"""Flags, and parts of the message."""


def settings(**flags: str) -> Settings:
    return read_settings(flags)


@pytest.mark.parametrize("line", REFUSED.strip().splitlines())
def test_what_contradicts_is_refused_with_the_mend(line: str) -> None:
    flags, *words = line.split(" // ")
    with pytest.raises(ConfigurationError) as raised:
        settings(**dict(each.split("=", 1) for each in flags.split()))
    assert [word for word in words if word not in str(raised.value)] == []


def test_a_head_node_without_the_memory_is_refused() -> None:
    """Its HeadNodeMemorySizeValidator: nodes / 25 + 0.6 GiB, at most 16."""
    assert settings(head_node_type="m6i.large", nodes="185")
    with pytest.raises(
        ConfigurationError, match=r"(?s)8 GiB of memory.*take 8.04.*-c head_node_type=m6i.xlarge"
    ):
        settings(head_node_type="m6i.large", nodes="186")
    assert settings(head_node_type="m6i.xlarge", nodes="4000")
    with pytest.raises(ConfigurationError, match=r"186 nodes take"):
        settings(head_node_type="m6i.large", nodes="182", cpu_queue="on")


def test_all_contradictions_are_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match=r"^3 problems"):
        settings(min_nodes="3", accounting="db.example.com", vpc_id=NETWORK["vpc_id"])
    monkeypatch.setattr("training_cluster.rules.compute.PCLUSTER_VERSION", "3.14.0")
    with pytest.raises(ConfigurationError, match=r"p6-b300 needs ParallelCluster 3\.15\.0"):
        settings(family="p6-b300")
    assert settings(family="p6-b200")


def test_efa_without_a_reservation_wants_a_group() -> None:
    """Other values: cluster/test_config.py."""
    assert not settings(family="m6i").first_queue.wants_new_placement_group
    assert settings(family="m6i", instance_type="m6i.32xlarge").first_queue.wants_new_placement_group


@pytest.mark.parametrize(
    "flags",
    [
        {"metrics": "prometheus", "os": "ubuntu2404", "alert_webhook_secret": SECRET},
        {"metrics": "amp", "metrics_workspace": WORKSPACE},
        {"image": "build", "compute_root_gib": "150"},
        {"compute_root_gib": "40"},
    ],
)
def test_flags_with_what_they_need_are_taken(flags: dict[str, str]) -> None:
    assert settings(**flags)
