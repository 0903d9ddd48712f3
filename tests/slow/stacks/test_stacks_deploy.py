"""The whole app on a local AWS: deploy, refuse, update, destroy. The tests build on each other, in order."""

import json
import os
import re
import shutil
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from rehearsal.cdk import CdkCli
from rehearsal.deployed import read_deployed_cluster
from rehearsal.local_aws.rights.denied import refuse_denied_calls
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.recording import judged_calls
from tests.slow.conftest import Cloud
from training_cluster.paths import ROOT
from training_cluster.permissions.table import load

pytestmark = pytest.mark.slow

OTHER_STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/Somebody/00000000"


def _event(kind: str, **changes: Any) -> dict[str, Any]:
    properties = {"ClusterName": "training", "ClusterConfiguration": json.dumps({"Region": "us-east-1"})}
    event = {
        "RequestType": kind,
        "RequestId": str(uuid.uuid4()),
        "StackId": OTHER_STACK,
        "ResourceType": "Custom::TrainingCluster",
        "ResourceProperties": properties,
    }
    known = {} if kind == "Create" else {"PhysicalResourceId": "training"}
    return event | known | changes


def _ask(cloud: Cloud, event: dict[str, Any], *, polls: int = 1) -> dict[str, Any]:
    """Call on_event and, if it does not refuse, is_complete as CDK's framework does; the last answer."""
    answer = cloud.provider("on_event", event)
    begun = event | answer.get("answer", {})
    for _ in range(polls if "answer" in answer else 0):
        answer = cloud.provider("is_complete", begun)
    return answer


def test_one_command_deploys_network_storage_and_cluster(cloud: Cloud) -> None:
    cloud.deploy()
    for name in ("TrainingCluster-Network", "TrainingCluster-Storage", "TrainingClusterStack", "training"):
        stack = cloud.stack(name)
        assert stack, name
        assert stack["StackStatus"] == "CREATE_COMPLETE", name
    storage = cloud.stack("TrainingCluster-Storage")
    assert storage and storage["EnableTerminationProtection"] is True


def test_the_cluster_is_the_one_that_was_asked_for(cloud: Cloud) -> None:
    cluster = read_deployed_cluster(cloud.address, "training")
    assert [p.name for p in cluster.partitions] == ["gpu"]
    assert cluster.partitions[0].node_names == ("gpu-dy-p4d-1", "gpu-dy-p4d-2")
    assert cluster.partitions[0].node_sets[0].shape.vcpus == 96


def test_outputs_say_how_to_connect_and_how_to_submit(cloud: Cloud) -> None:
    stack = cloud.stack("TrainingClusterStack")
    assert stack
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    assert outputs["HeadNodeInstanceId"].startswith("i-")
    assert outputs["HeadNodeInstanceId"] in outputs["Connect"]
    assert outputs["Submit"] == "sbatch --nodes 2 /fsx/training/job.slurm gpt2"


def test_scripts_are_in_the_bucket(cloud: Cloud) -> None:
    stack = cloud.stack("TrainingCluster-Storage")
    assert stack
    bucket = next(o["OutputValue"] for o in stack["Outputs"] if o["OutputKey"] == "BucketName")
    listed = cloud.client("s3").list_objects_v2(Bucket=bucket)["Contents"]
    folder = "bootstrap/training"
    digest = read_deployed_cluster(cloud.address, "training").bundle_sha256
    assert {entry["Key"] for entry in listed} == {
        f"{folder}/{name}" for name in ("bootstrap.sh", f"bundle-{digest}.tar.gz")
    }


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_cluster_that_another_stack_made_is_refused_and_not_touched(cloud: Cloud, kind: str) -> None:
    before = cloud.stack("training")
    answer = _ask(cloud, _event(kind))
    assert "error" in answer
    assert "training" in answer["error"]
    assert "touched" in answer["error"]
    assert cloud.stack("training") == before


def test_a_delete_for_another_stack_leaves_the_cluster_alone(cloud: Cloud) -> None:
    before = cloud.stack("training")
    assert _ask(cloud, _event("Delete")) == {"answer": {"IsComplete": True}}
    assert cloud.stack("training") == before


def test_a_delete_of_a_cluster_that_is_gone_succeeds(cloud: Cloud) -> None:
    event = _event("Delete", PhysicalResourceId="nobody", ResourceProperties={"ClusterName": "nobody"})
    assert _ask(cloud, event) == {"answer": {"IsComplete": True}}


def test_a_config_that_the_library_refuses_creates_nothing_and_says_why(cloud: Cloud) -> None:
    config = {"Region": "us-east-1", "Image": {"Os": "alinux2"}, "HeadNode": {}, "Scheduling": {}}
    properties = {"ClusterName": "broken", "ClusterConfiguration": json.dumps(config)}
    answer = cloud.provider("on_event", _event("Create", ResourceProperties=properties))
    assert "Image" in answer["error"]
    assert len(answer["error"].encode()) < 4096
    assert cloud.stack("broken") is None


def test_more_nodes_are_one_deploy(cloud: Cloud) -> None:
    cloud.deploy("nodes=3")
    cluster = read_deployed_cluster(cloud.address, "training")
    assert cluster.stack_status == "UPDATE_COMPLETE"
    assert len(cluster.partitions[0].node_names) == 3


def _fleet(cloud: Cloud) -> str:
    table = cloud.client("dynamodb")
    item = table.get_item(TableName="parallelcluster-training", Key={"Id": {"S": "COMPUTE_FLEET"}})["Item"]
    return str(item["Data"]["M"]["status"]["S"])


def test_a_queue_and_a_change_that_wants_a_stopped_fleet_are_one_deploy_and_the_fleet_runs_again(
    cloud: Cloud,
) -> None:
    """Spot instead of on demand: the library takes it from a stopped fleet only."""
    cloud.deploy("nodes=3", "capacity=spot", "cpu_queue=on")
    assert _capacity_type(cloud) == "SPOT"
    cluster = read_deployed_cluster(cloud.address, "training")
    assert [p.name for p in cluster.partitions] == ["gpu", "cpu"]
    assert _fleet(cloud) == "RUNNING"


@pytest.mark.nightly
def test_nodes_that_run_are_left_alone_unless_they_may_be_stopped(cloud: Cloud) -> None:
    ec2 = cloud.client("ec2")
    subnet = read_deployed_cluster(cloud.address, "training").config["HeadNode"]["Networking"]["SubnetId"]
    tags = {"parallelcluster:cluster-name": "training", "parallelcluster:node-type": "Compute"}
    node = ec2.run_instances(
        ImageId=ec2.describe_images()["Images"][0]["ImageId"],
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet,
        TagSpecifications=[
            {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
        ],
    )["Instances"][0]["InstanceId"]
    with pytest.raises(RehearsalError):
        cloud.deploy("nodes=3", "cpu_queue=on")
    busy = "1 compute nodes of training run, and this update requires them to be stopped"
    assert any(busy in reason and "on_busy=stop" in reason for reason in _reasons(cloud))
    parent = cloud.stack("TrainingClusterStack")
    assert parent and parent["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert _state(ec2, node) == "running"
    assert _fleet(cloud) == "RUNNING"
    cloud.deploy("nodes=3", "cpu_queue=on", "on_busy=drain")
    assert _capacity_type(cloud) == "ONDEMAND"
    assert _state(ec2, node) == "running", "draining is Slurm's, when the job has ended"
    cloud.deploy("nodes=3", "cpu_queue=on", "capacity=spot", "on_busy=stop")
    assert _capacity_type(cloud) == "SPOT"
    assert _state(ec2, node) == "terminated"
    assert _fleet(cloud) == "RUNNING"


def _capacity_type(cloud: Cloud) -> str:
    config = read_deployed_cluster(cloud.address, "training").config
    return str(config["Scheduling"]["SlurmQueues"][0]["CapacityType"])


def _reasons(cloud: Cloud) -> list[str]:
    """Read the reasons of failed updates of our stack's resources."""
    events = cloud.client("cloudformation").describe_stack_events(StackName="TrainingClusterStack")
    return [
        e["ResourceStatusReason"] for e in events["StackEvents"] if e["ResourceStatus"] == "UPDATE_FAILED"
    ]


def _state(ec2: Any, instance_id: str) -> str:
    found = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    return str(found["State"]["Name"])


def test_the_same_config_again_changes_nothing(cloud: Cloud) -> None:
    """As CloudFormation may send an event twice, and as a rollback does."""
    before = cloud.stack("training")
    parent = cloud.stack("TrainingClusterStack")
    assert parent
    config = read_deployed_cluster(cloud.address, "training").config
    config["Tags"] = [tag for tag in config["Tags"] if tag["Key"] != "training-cluster:stack-id"]
    properties = {"ClusterName": "training", "ClusterConfiguration": json.dumps(config)}
    event = _event("Update", StackId=parent["StackId"], ResourceProperties=properties)
    answer = _ask(cloud, event, polls=2)
    assert answer["answer"]["IsComplete"] is True
    assert cloud.stack("training") == before


def test_a_change_that_no_cluster_can_take_is_refused_with_its_name_and_rolled_back(cloud: Cloud) -> None:
    with pytest.raises(RehearsalError):
        cloud.deploy("nodes=3", "cpu_queue=on", "capacity=spot", "os=ubuntu2204")
    assert any("Image.Os: ubuntu2404 -> ubuntu2204" in reason for reason in _reasons(cloud))
    parent = cloud.stack("TrainingClusterStack")
    assert parent and parent["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    cluster = read_deployed_cluster(cloud.address, "training")
    assert len(cluster.partitions[0].node_names) == 3
    assert any("-c cluster_name=training-2" in reason for reason in _reasons(cloud)), "the way round"
    cloud.deploy("nodes=3", "cpu_queue=on", "capacity=spot")


def test_status_tells_the_stages_of_the_last_deploy(cloud: Cloud) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ops", "status"],
        cwd=ROOT,
        env=cloud.address.client_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert re.search(r"^TrainingClusterStack +UPDATE_", done.stdout, re.MULTILINE)
    assert "of the cluster, took" in done.stdout
    assert "Z  validating" in done.stdout


def _data(cloud: Cloud) -> dict[str, Any]:
    """List what must outlive every cluster: file systems, their links to the bucket, its objects."""
    fsx, efs, stack = cloud.client("fsx"), cloud.client("efs"), cloud.stack("TrainingCluster-Storage")
    assert stack
    bucket = next(o["OutputValue"] for o in stack["Outputs"] if o["OutputKey"] == "BucketName")
    objects = cloud.client("s3").list_objects_v2(Bucket=bucket)["Contents"]
    return {
        "lustre": fsx.describe_file_systems()["FileSystems"],
        "associations": fsx.describe_data_repository_associations()["Associations"],
        "efs": [each["FileSystemId"] for each in efs.describe_file_systems()["FileSystems"]],
        "objects": [each["Key"] for each in objects],
    }


def test_destroy_takes_the_cluster_and_leaves_network_storage_and_data(cloud: Cloud) -> None:
    before = _data(cloud)
    assert len(before["associations"]) == 2
    # bootstrap.sh, and a bundle for each change of flags that nodes see.
    assert len(before["objects"]) >= 3
    cloud.destroy("nodes=3", "cpu_queue=on", "capacity=spot")
    assert cloud.stack("training") is None
    assert cloud.stack("TrainingClusterStack") is None
    for name in ("TrainingCluster-Network", "TrainingCluster-Storage"):
        stack = cloud.stack(name)
        assert stack and stack["StackStatus"].endswith("_COMPLETE")
    assert _data(cloud) == before


def test_a_deploy_after_a_destroy_finds_the_same_storage(cloud: Cloud) -> None:
    before = _data(cloud)
    cloud.deploy("family=m6i")
    after = _data(cloud)
    scripts = set(after.pop("objects")) - set(before.pop("objects"))
    assert after == before
    cluster = read_deployed_cluster(cloud.address, "training")
    assert scripts == {f"bootstrap/training/bundle-{cluster.bundle_sha256}.tar.gz"}
    assert cluster.partitions[0].node_names == ("cpu-dy-m6i-1", "cpu-dy-m6i-2")


def test_another_size_is_one_deploy_and_the_fleet_runs_again(cloud: Cloud) -> None:
    cloud.deploy("family=m6i", "instance_type=m6i.16xlarge")
    config = read_deployed_cluster(cloud.address, "training").config
    resource = config["Scheduling"]["SlurmQueues"][0]["ComputeResources"][0]
    assert resource["InstanceType"] == "m6i.16xlarge"
    assert _fleet(cloud) == "RUNNING"


def test_a_changed_script_is_one_deploy_on_the_same_head_node(cloud: Cloud, tmp_path: Path) -> None:
    """From a copy of the project in which somebody edited a bootstrap step."""
    copy = tmp_path / "project"
    for name in ("assets", "cluster_configs", "constructs", "stacks"):
        shutil.copytree(ROOT / name, copy / name)
    for name in ("app.py", "cdk.json", "requirements-pcluster.txt"):
        shutil.copy(ROOT / name, copy)
    (copy / "node_modules").symlink_to(ROOT / "node_modules")
    step = next((copy / "assets" / "bootstrap" / "steps").glob("30-*.sh"))
    step.write_text(step.read_text() + "# edited\n")
    before = _head_node(cloud)
    environment = cloud.address.client_environment() | {"PYTHONPATH": f"{copy}:{copy / 'constructs'}"}
    edited = CdkCli(project=copy, environment=environment, logs=tmp_path, narrator=Narrator())
    flags = ("-c", "family=m6i", "-c", "instance_type=m6i.16xlarge", "--require-approval", "never")
    edited.run("deploy", "TrainingClusterStack", *flags, output=tmp_path / "cdk.out")
    after = _head_node(cloud)
    assert after[0] == before[0], "the instance"
    assert after[1] != before[1], "the checksum among the arguments of OnNodeUpdated"
    assert _fleet(cloud) == "RUNNING"


def _head_node(cloud: Cloud) -> tuple[str, Any]:
    stack = cloud.stack("TrainingClusterStack")
    assert stack
    outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
    actions = read_deployed_cluster(cloud.address, "training").config["HeadNode"]["CustomActions"]
    return outputs["HeadNodeInstanceId"], actions["OnNodeUpdated"]["Args"]


@pytest.mark.nightly
def test_login_nodes_are_added_and_tagged_anew_in_one_deploy_each(cloud: Cloud) -> None:
    """A changed tag updates all resources of the cluster's stack."""
    size = ("family=m6i", "instance_type=m6i.16xlarge")
    cloud.deploy(*size, "login_nodes=1")
    cloud.deploy(*size, "login_nodes=2", "tags=team=one")
    config = read_deployed_cluster(cloud.address, "training").config
    assert [pool["Count"] for pool in config["LoginNodes"]["Pools"]] == [2]
    assert {"Key": "team", "Value": "one"} in config["Tags"]


def test_every_call_of_the_provider_was_judged_and_none_lacked_a_right(cloud: Cloud) -> None:
    refuse_denied_calls(cloud.address)
    lines = cloud.address.judged_calls.read_text().splitlines()
    recording = judged_calls.add("", lines)
    actions = {call.need.action for call in judged_calls.parse(recording)}
    assert {
        "ec2:RunInstances",
        "iam:PassRole",
        "cloudformation:UpdateStack",
        "ec2:TerminateInstances",
    } <= actions
    known = {name for row in load() for name in row.type_names}
    assert judged_calls.types_of(recording) <= known, "type: make permissions"
    if os.environ.get("UPDATE_GOLDEN"):
        judged_calls.PATH.write_text(judged_calls.add(judged_calls.PATH.read_text(), lines))


def test_destroy_all_takes_the_cluster_and_stops_at_the_data(cloud: Cloud) -> None:
    before = _data(cloud)
    with pytest.raises(RehearsalError, match="`cdk destroy` failed"):
        cloud.cdk.run("destroy", "--all", "--force", output=cloud.folder / "cdk.out")
    assert "TerminationProtection" in (cloud.folder / "cdk-destroy.log").read_text()
    assert cloud.stack("TrainingClusterStack") is None
    assert cloud.stack("training") is None
    for name in ("TrainingCluster-Network", "TrainingCluster-Storage"):
        stack = cloud.stack(name)
        assert stack and stack["StackStatus"].endswith("_COMPLETE")
    assert _data(cloud) == before
