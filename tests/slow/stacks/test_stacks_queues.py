"""Several queues in a private network: deployed, a job on each, one added, overrides, read back. In order."""

import os
from pathlib import Path

import pytest
import yaml

from ops.importing.command import import_config
from rehearsal.deployed import read_deployed_cluster
from rehearsal.local_slurm import LocalSlurm
from rehearsal.problems import RehearsalError
from tests.slow.account import Account
from tests.slow.conftest import Cloud

pytestmark = pytest.mark.slow

QUEUES = """
burst:
  instance_types: [g6.12xlarge, g5.12xlarge]
  nodes: 3
  allocation_strategy: prioritized
  partition: {MaxTime: 12:00:00}
prep:
  compute_resources:
    - {name: small, instance_types: c6i.4xlarge, nodes: 2}
    - {name: large, instance_types: m6i.16xlarge, nodes: 1}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("queues") / "queues.yaml"
    file.write_text(QUEUES)
    return file


@pytest.fixture(scope="module")
def account(cloud: Cloud) -> Account:
    return Account(cloud.address)


@pytest.fixture(scope="module")
def flags(account: Account, file: Path) -> tuple[str, ...]:
    network = account.network
    return (
        f"queues={file}",
        "queue_name=train",
        "public_access=off",
        f"vpc_id={network.vpc}",
        f"private_subnet_id={network.private}",
    )


def test_everything_is_in_the_private_subnet(cloud: Cloud, account: Account, flags: tuple[str, ...]) -> None:
    cloud.deploy(*flags)
    config = read_deployed_cluster(cloud.address, "training").config
    private = account.network.private
    queues = config["Scheduling"]["SlurmQueues"]
    assert [each["Name"] for each in queues] == ["train", "burst", "prep"]
    assert {tuple(each["Networking"]["SubnetIds"]) for each in queues} == {(private,)}
    assert config["HeadNode"]["Networking"]["SubnetId"] == private
    groups = [each["Networking"].get("PlacementGroup", {}).get("Name") for each in queues]
    assert None not in groups[:2]
    assert groups[0] != groups[1]
    resources = account.client("cloudformation").describe_stack_resources(StackName="TrainingCluster-Network")
    types = {each["ResourceType"] for each in resources["StackResources"]}
    assert {each.removeprefix("AWS::EC2::") for each in types if each.startswith("AWS::EC2::")} == {
        "SecurityGroup",
        "SecurityGroupIngress",
        "SecurityGroupEgress",
    }, "an own network is used unchanged"
    (system,) = cloud.client("fsx").describe_file_systems()["FileSystems"]
    assert system["SubnetIds"] == [private]


def test_a_job_runs_on_each_partition(cloud: Cloud, tmp_path: Path) -> None:
    deployed = read_deployed_cluster(cloud.address, "training")
    marker = ("LOCAL_SLURM_TEST", f"queues-{os.getpid()}")
    with LocalSlurm(root=tmp_path, partitions=deployed.partitions, marker=marker, suspend_time_s=20) as slurm:
        nodes: dict[str, list[str]] = {}
        for partition in ("train", "burst", "prep", "burst,train"):
            lines = nodes.setdefault(partition, [])
            arguments = [f"--partition={partition}", "--wrap", "srun --mpi=none printenv SLURMD_NODENAME"]
            job = slurm.wait(slurm.submit(arguments), timeout_s=120, on_line=lines.append)
            assert job.is_completed
    assert nodes["train"] == ["train-dy-p4d-1"]
    assert nodes["burst"] == ["burst-dy-g6-12xlarge-1"]
    assert nodes["prep"][0] in {"prep-dy-small-1", "prep-dy-large-1"}
    assert nodes["burst,train"][0].startswith(("burst-", "train-"))


def test_another_queue_is_added_while_the_cluster_runs(
    cloud: Cloud, flags: tuple[str, ...], file: Path
) -> None:
    file.write_text(QUEUES + "late: {instance_types: g4dn.12xlarge, nodes: 1, placement_group: off}\n")
    cloud.deploy(*flags)
    config = read_deployed_cluster(cloud.address, "training").config
    assert [each["Name"] for each in config["Scheduling"]["SlurmQueues"]][-1] == "late"


def test_the_cluster_is_imported_with_its_queues(cloud: Cloud, tmp_path: Path) -> None:
    config = read_deployed_cluster(cloud.address, "training").config
    import_config(config, tmp_path / "out")
    queues = yaml.safe_load((tmp_path / "out" / "queues.yaml").read_text())
    assert list(queues) == ["train", "burst", "prep", "late"]
    assert queues["burst"]["compute_resources"][0]["instance_types"] == ["g6.12xlarge", "g5.12xlarge"]


POLICY = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
OVERRIDES = f"""
Monitoring: {{Logs: {{CloudWatch: {{RetentionInDays: 30}}}}}}
Scheduling:
  SlurmSettings: {{CustomSlurmSettings: [{{SlurmdTimeout: 600}}]}}
  SlurmQueues:
    - {{Name: prep, JobExclusiveAllocation: true, Iam: {{AdditionalIamPolicies: [{{Policy: "{POLICY}"}}]}}}}
"""


@pytest.fixture(scope="module")
def overridden(flags: tuple[str, ...], file: Path) -> tuple[tuple[str, ...], Path]:
    overrides = file.with_name("overrides.yaml")
    return (*flags, f"overrides={overrides}"), overrides


def test_an_override_stops_the_fleet_for_a_while(
    cloud: Cloud, overridden: tuple[tuple[str, ...], Path]
) -> None:
    flags, overrides = overridden
    overrides.write_text(OVERRIDES.replace("{CustomSlurm", "{ScaledownIdletime: 5, CustomSlurm"))
    cloud.deploy(*flags)
    config = read_deployed_cluster(cloud.address, "training").config
    assert config["Scheduling"]["SlurmSettings"]["ScaledownIdletime"] == 5
    assert config["Monitoring"]["Logs"]["CloudWatch"]["RetentionInDays"] == 30
    assert {"SlurmdTimeout": 600} in config["Scheduling"]["SlurmSettings"]["CustomSlurmSettings"]
    queues = config["Scheduling"]["SlurmQueues"]
    assert [{"Policy": POLICY} in each["Iam"]["AdditionalIamPolicies"] for each in queues] == [
        each["Name"] == "prep" for each in queues
    ]
    assert config["Scheduling"]["SlurmQueues"][2]["JobExclusiveAllocation"] is True
    assert "  stopping the fleet" in cloud.trainctl("status").stdout


def test_an_override_that_is_refused_rolls_back(
    cloud: Cloud, overridden: tuple[tuple[str, ...], Path]
) -> None:
    flags, overrides = overridden
    before = read_deployed_cluster(cloud.address, "training").config
    text = overrides.read_text()
    overrides.write_text(text + "HeadNode: {Dcv: {Enabled: true}}\n")
    with pytest.raises(RehearsalError):
        cloud.deploy(*flags)
    events = cloud.client("cloudformation").describe_stack_events(StackName="TrainingClusterStack")
    failed = [e for e in events["StackEvents"] if e["ResourceStatus"] == "UPDATE_FAILED"]
    assert any("HeadNode.Dcv" in e["ResourceStatusReason"] for e in failed)
    assert read_deployed_cluster(cloud.address, "training").config == before
    overrides.write_text(text)


def test_destroy_leaves_the_own_network(
    cloud: Cloud, account: Account, overridden: tuple[tuple[str, ...], Path]
) -> None:
    flags, _ = overridden
    cloud.destroy(*flags)
    assert cloud.client("ec2").describe_placement_groups()["PlacementGroups"] == []
    assert account.client("ec2").describe_vpcs(VpcIds=[account.network.vpc])["Vpcs"]
