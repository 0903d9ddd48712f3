"""Several queues with overrides in a private network: a job on each, one added, read back. In order."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from ops.importing.command import import_config
from rehearsal.deployed import read_deployed_cluster
from rehearsal.local_slurm import LocalSlurm
from tests.slow.account import Account
from tests.slow.conftest import Cloud
from training_cluster.stack_names import DEFAULT_CLUSTER

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
POLICY = "arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess"
OVERRIDES = f"""
Monitoring: {{Logs: {{CloudWatch: {{RetentionInDays: 30}}}}}}
Scheduling:
  SlurmSettings: {{EnableMemoryBasedScheduling: true, CustomSlurmSettings: [{{SlurmdTimeout: 600}}]}}
  SlurmQueues:
    - {{Name: prep, Iam: {{AdditionalIamPolicies: [{{Policy: "{POLICY}"}}]}}}}
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("queues") / "queues.yaml"
    file.write_text(QUEUES)
    file.with_name("overrides.yaml").write_text(OVERRIDES)
    return file


@pytest.fixture(scope="module")
def account(cloud: Cloud) -> Account:
    return Account(cloud.address)


@pytest.fixture(scope="module")
def flags(account: Account, file: Path) -> tuple[str, ...]:
    network = account.network
    return (
        f"queues={file}",
        f"overrides={file.with_name('overrides.yaml')}",
        "queue_name=train",
        "public_access=off",
        # With these the cluster has a policy that others lack.
        *("metrics=prometheus", "alarm_email=me@example.com"),
        f"vpc_id={network.vpc}",
        f"private_subnet_id={network.private}",
    )


def test_everything_is_in_the_private_subnet(cloud: Cloud, account: Account, flags: tuple[str, ...]) -> None:
    cloud.deploy(*flags)
    config = read_deployed_cluster(cloud.address, DEFAULT_CLUSTER).config
    private = account.network.private
    queues = config["Scheduling"]["SlurmQueues"]
    assert [each["Name"] for each in queues] == ["train", "burst", "prep"]
    assert {tuple(each["Networking"]["SubnetIds"]) for each in queues} == {(private,)}
    assert config["HeadNode"]["Networking"]["SubnetId"] == private
    groups = [each["Networking"].get("PlacementGroup", {}).get("Name") for each in queues]
    assert groups[0]
    assert groups[1:] == [None, None], "EC2 finds less capacity for several types within a group"
    resources = account.client("cloudformation").describe_stack_resources(StackName="TrainingCluster-Network")
    types = {each["ResourceType"] for each in resources["StackResources"]}
    assert {each.removeprefix("AWS::EC2::") for each in types if each.startswith("AWS::EC2::")} == {
        "SecurityGroup",
        "SecurityGroupIngress",
        "SecurityGroupEgress",
    }, "an own network is used unchanged"
    (system,) = cloud.client("fsx").describe_file_systems()["FileSystems"]
    assert system["SubnetIds"] == [private]


def _plan(cloud: Cloud, *flags: str) -> dict[str, Any]:
    context = [word for flag in flags for word in ("-c", flag)]
    done = cloud.trainctl("plan", "--json", "--offline-prices", *context)
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)["plan"]
    return found


def test_a_plan_of_the_same_flags_changes_nothing(cloud: Cloud, flags: tuple[str, ...]) -> None:
    """It compares with the deployed config, in which the file of overrides has arrived."""
    found = _plan(cloud, *flags)
    assert (found["state"], found["changes"], found["resources"]) == ("update", [], [])
    assert found["cost_before"] == found["cost_after"]


def test_a_plan_tells_live_changes(cloud: Cloud, flags: tuple[str, ...]) -> None:
    found = _plan(cloud, *flags, "nodes=4", "cpu_queue=on")
    verdicts = {each["what"]: (each["old"], each["new"], each["verdict"]) for each in found["changes"]}
    assert verdicts["nodes"] == ("2", "4", "live")
    assert verdicts["cpu_queue"] == ("off", "on", "live")
    resources = {(each["stack"], each["kind"], each["type"]) for each in found["resources"]}
    assert ("TrainingClusterStack", "changed", "Custom::TrainingCluster") in resources
    assert not found["not_judged"], "the validators were asked"


def test_a_job_runs_on_each_partition(cloud: Cloud, tmp_path: Path) -> None:
    deployed = read_deployed_cluster(cloud.address, DEFAULT_CLUSTER)
    marker = ("LOCAL_SLURM_TEST", f"queues-{os.getpid()}")
    with LocalSlurm(root=tmp_path, partitions=deployed.partitions, marker=marker, suspend_time_s=20) as slurm:
        nodes: dict[str, list[str]] = {}
        for partition in ("train", "burst", "prep", "burst,train"):
            lines = nodes.setdefault(partition, [])
            arguments = [f"--partition={partition}", "--wrap", "srun --mpi=none printenv SLURMD_NODENAME"]
            job = slurm.wait(slurm.submit(arguments), timeout_s=120, on_line=lines.append)
            assert job.is_completed
    assert (nodes["train"], nodes["burst"]) == (["train-dy-p4d-1"], ["burst-dy-g6-12xlarge-1"])
    assert nodes["prep"][0] in {"prep-dy-small-1", "prep-dy-large-1"}
    assert nodes["burst,train"][0].startswith(("burst-", "train-"))


def test_another_queue_is_added_while_cluster_runs(cloud: Cloud, flags: tuple[str, ...], file: Path) -> None:
    file.write_text(QUEUES + "late: {instance_types: g4dn.12xlarge, nodes: 1, placement_group: off}\n")
    cloud.deploy(*flags)
    config = read_deployed_cluster(cloud.address, DEFAULT_CLUSTER).config
    assert [each["Name"] for each in config["Scheduling"]["SlurmQueues"]][-1] == "late"


def test_the_cluster_is_imported_with_its_queues(cloud: Cloud, tmp_path: Path) -> None:
    config = read_deployed_cluster(cloud.address, DEFAULT_CLUSTER).config
    import_config(config, tmp_path / "out")
    queues = yaml.safe_load((tmp_path / "out" / "queues.yaml").read_text())
    assert list(queues) == ["train", "burst", "prep", "late"]
    assert queues["burst"]["compute_resources"][0]["instance_types"] == ["g6.12xlarge", "g5.12xlarge"]


def test_destroy_leaves_the_own_network(cloud: Cloud, account: Account, flags: tuple[str, ...]) -> None:
    cloud.destroy(*flags)
    assert cloud.client("ec2").describe_placement_groups()["PlacementGroups"] == []
    assert account.client("ec2").describe_vpcs(VpcIds=[account.network.vpc])["Vpcs"]
