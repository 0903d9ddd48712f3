"""The whole app on a local AWS: deploy, refuse, update, destroy, build images. In order."""

import os
import re
import subprocess
from typing import Any

import pytest

from rehearsal.deployed import read_deployed_cluster
from rehearsal.local_aws.rights.denied import refuse_denied_calls
from rehearsal.problems import RehearsalError
from rehearsal.recording import judged_calls
from rehearsal.validation.foundation import register_image
from tests.slow.conftest import Cloud
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.names import image_name, image_parameter, image_stack_name, parent_name
from training_cluster.permissions.table import load
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER as CLUSTER

pytestmark = pytest.mark.slow

BUILT = ("family=m6i", "image=build")
IMAGE = read_settings({"family": "m6i", "image": "build"})
IMAGE_STACK = image_stack_name(IMAGE)


def test_one_command_deploys_network_storage_and_cluster(cloud: Cloud) -> None:
    cloud.deploy()
    for name in ("TrainingCluster-Network", "TrainingCluster-Storage", "TrainingClusterStack", CLUSTER):
        stack = cloud.stack(name)
        assert stack, name
        assert stack["StackStatus"] == "CREATE_COMPLETE", name
    storage = cloud.stack("TrainingCluster-Storage")
    assert storage and storage["EnableTerminationProtection"] is True


def test_outputs_say_how_to_connect_and_submit(cloud: Cloud) -> None:
    cluster = read_deployed_cluster(cloud.address, CLUSTER)
    assert [p.name for p in cluster.partitions] == ["gpu"]
    assert cluster.partitions[0].node_names == ("gpu-dy-p4d-1", "gpu-dy-p4d-2")
    assert cluster.partitions[0].node_sets[0].shape.vcpus == 96
    outputs = cloud.outputs("TrainingClusterStack")
    assert outputs["HeadNodeInstanceId"].startswith("i-")
    assert outputs["HeadNodeInstanceId"] in outputs["Connect"]
    assert outputs["Submit"] == "sbatch --nodes 2 /fsx/training/job.slurm gpt2"
    digest = cluster.bundle_sha256
    names = {"bootstrap.sh", f"bundle-{digest}.tar.gz"}
    assert set(_data(cloud)["objects"]) == {f"bootstrap/{CLUSTER}/{name}" for name in names}


def _fleet(cloud: Cloud) -> str:
    table = cloud.client("dynamodb")
    item = table.get_item(TableName=f"parallelcluster-{CLUSTER}", Key={"Id": {"S": "COMPUTE_FLEET"}})["Item"]
    return str(item["Data"]["M"]["status"]["S"])


def test_one_deploy_stops_the_fleet_and_starts_it(cloud: Cloud) -> None:
    """Spot instead of on demand: the library takes it from a stopped fleet only. The head node stays."""
    before = _head_node(cloud)
    cloud.deploy("nodes=3", "capacity=spot", "cpu_queue=on")
    after = _head_node(cloud)
    assert after[0] == before[0], "the instance"
    assert after[1] != before[1], "the checksum among the arguments of OnNodeUpdated"
    assert _capacity_type(cloud) == "SPOT"
    cluster = read_deployed_cluster(cloud.address, CLUSTER)
    assert cluster.stack_status == "UPDATE_COMPLETE"
    assert [(p.name, len(p.node_names)) for p in cluster.partitions] == [("gpu", 3), ("cpu", 4)]
    assert _fleet(cloud) == "RUNNING"


def _head_node(cloud: Cloud) -> tuple[str, Any]:
    actions = read_deployed_cluster(cloud.address, CLUSTER).config["HeadNode"]["CustomActions"]
    return cloud.outputs("TrainingClusterStack")["HeadNodeInstanceId"], actions["OnNodeUpdated"]["Args"]


def test_status_tells_the_stages_of_the_last_deploy(cloud: Cloud) -> None:
    done = cloud.trainctl("status")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^TrainingClusterStack +UPDATE_", done.stdout, re.MULTILINE)
    assert "of the cluster, took" in done.stdout
    assert "Z  validating" in done.stdout
    assert "  stopping the fleet" in done.stdout


@pytest.mark.nightly
def test_nodes_that_run_are_left_alone(cloud: Cloud) -> None:
    ec2 = cloud.client("ec2")
    subnet = read_deployed_cluster(cloud.address, CLUSTER).config["HeadNode"]["Networking"]["SubnetId"]
    tags = {"parallelcluster:cluster-name": CLUSTER, "parallelcluster:node-type": "Compute"}
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
        cloud.deploy("nodes=3", "cpu_queue=on", "capacity=ondemand")
    failed = cloud.reasons("TrainingClusterStack", "UPDATE_FAILED")
    busy = f"1 compute nodes of {CLUSTER} run, and this update requires them to be stopped"
    assert any(busy in reason and "on_busy=stop" in reason for reason in failed)
    parent = cloud.stack("TrainingClusterStack")
    assert parent and parent["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"
    assert _state(ec2, node) == "running"
    assert _fleet(cloud) == "RUNNING"
    cloud.deploy("nodes=3", "cpu_queue=on", "capacity=ondemand", "on_busy=drain")
    assert _capacity_type(cloud) == "ONDEMAND"
    assert _state(ec2, node) == "running", "draining is Slurm's, when the job has ended"
    cloud.deploy("nodes=3", "cpu_queue=on", "capacity=spot", "on_busy=stop")
    assert _capacity_type(cloud) == "SPOT"
    assert _state(ec2, node) == "terminated"
    assert _fleet(cloud) == "RUNNING"


def _capacity_type(cloud: Cloud) -> str:
    config = read_deployed_cluster(cloud.address, CLUSTER).config
    return str(config["Scheduling"]["SlurmQueues"][0]["CapacityType"])


def _state(ec2: Any, instance_id: str) -> str:
    found = ec2.describe_instances(InstanceIds=[instance_id])["Reservations"][0]["Instances"][0]
    return str(found["State"]["Name"])


def _data(cloud: Cloud) -> dict[str, Any]:
    """List what must outlive every cluster: file systems, their links to the bucket, its objects."""
    fsx, efs = cloud.client("fsx"), cloud.client("efs")
    bucket = cloud.outputs("TrainingCluster-Storage")["BucketName"]
    objects = cloud.client("s3").list_objects_v2(Bucket=bucket)["Contents"]
    return {
        "lustre": fsx.describe_file_systems()["FileSystems"],
        "associations": fsx.describe_data_repository_associations()["Associations"],
        "efs": [each["FileSystemId"] for each in efs.describe_file_systems()["FileSystems"]],
        "objects": [each["Key"] for each in objects],
    }


def test_destroy_all_stops_at_the_data(cloud: Cloud) -> None:
    before = _data(cloud)
    assert len(before["associations"]) == 2
    # bootstrap.sh, and a bundle for each change of flags that nodes see.
    assert len(before["objects"]) >= 3
    with pytest.raises(RehearsalError, match="`cdk destroy` failed"):
        cloud.cdk.run("destroy", "--all", "--force", output=cloud.folder / "cdk.out")
    assert "TerminationProtection" in (cloud.folder / "cdk-destroy.log").read_text()
    assert cloud.stack("TrainingClusterStack") is None
    assert cloud.stack(CLUSTER) is None
    for name in ("TrainingCluster-Network", "TrainingCluster-Storage"):
        stack = cloud.stack(name)
        assert stack and stack["StackStatus"].endswith("_COMPLETE")
    assert _data(cloud) == before


def test_a_deploy_after_a_destroy_finds_storage(cloud: Cloud) -> None:
    before = _data(cloud)
    cloud.deploy(*BUILT)
    after = _data(cloud)
    scripts = set(after.pop("objects")) - set(before.pop("objects"))
    assert after == before
    cluster = read_deployed_cluster(cloud.address, CLUSTER)
    assert scripts == {f"bootstrap/{CLUSTER}/bundle-{cluster.bundle_sha256}.tar.gz"}
    assert len(cluster.partitions[0].node_names) == 2


def _queue_image(cloud: Cloud) -> str | None:
    """Return the image of the deployed cluster's queue."""
    (queue,) = read_deployed_cluster(cloud.address, CLUSTER).config["Scheduling"]["SlurmQueues"]
    image: str | None = queue.get("Image", {}).get("CustomAmi")
    return image


def _newest(cloud: Cloud) -> str:
    parameter = cloud.client("ssm").get_parameter(Name=image_parameter(IMAGE))["Parameter"]
    assert parameter["DataType"] == "aws:ec2:image"
    return str(parameter["Value"])


def _image(cloud: Cloud, image_id: str) -> dict[str, Any]:
    (image,) = cloud.client("ec2").describe_images(ImageIds=[image_id])["Images"]
    return dict(image)


def test_that_deploy_built_the_queues_image(cloud: Cloud) -> None:
    image, outputs = _image(cloud, _newest(cloud)), cloud.outputs(IMAGE_STACK)
    assert _queue_image(cloud) == image["ImageId"] == outputs["ImageId"]
    tags = {each["Key"]: each["Value"] for each in image["Tags"]}
    assert (tags["parallelcluster:version"], tags["parallelcluster:os"]) == (PCLUSTER_VERSION, "ubuntu2404")
    assert tags["parallelcluster:build_status"] == "available"
    assert outputs["ParentImage"].startswith(parent_name(IMAGE))


def test_the_next_deploy_takes_the_pipelines_image(cloud: Cloud) -> None:
    former, outputs = _newest(cloud), cloud.outputs(IMAGE_STACK)
    done = subprocess.run(
        outputs["BuildAgain"],
        shell=True,
        env=cloud.address.client_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"image/{image_name(IMAGE)}/1.0.0/2" in done.stdout
    newer = _newest(cloud)
    assert newer != former
    assert _queue_image(cloud) == former
    cloud.deploy(*BUILT)
    assert _queue_image(cloud) == newer == _newest(cloud)
    assert cloud.outputs(IMAGE_STACK)["ImageId"] == former  # the stack built nothing


def test_an_image_of_another_version_is_refused(cloud: Cloud) -> None:
    before = _queue_image(cloud)
    old = register_image(cloud.address, "ubuntu2204", version="3.15.0")
    with pytest.raises(RehearsalError) as raised:
        cloud.deploy(BUILT[0], f"image={old}")
    said = re.sub(r"\s+", " ", str(raised.value))
    assert f"image={old} (own-ubuntu2204-3.15.0) cannot be used: it is for ParallelCluster 3.15.0" in said
    assert _queue_image(cloud) == before
    stack = cloud.stack("TrainingClusterStack")
    assert stack and stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"


@pytest.mark.nightly
def test_login_nodes_are_added_and_tagged(cloud: Cloud) -> None:
    """A changed tag updates all resources of the cluster's stack."""
    cloud.deploy(*BUILT, "login_nodes=1")
    cloud.deploy(*BUILT, "login_nodes=2", "tags=team=one")
    config = read_deployed_cluster(cloud.address, CLUSTER).config
    assert [pool["Count"] for pool in config["LoginNodes"]["Pools"]] == [2]
    assert {"Key": "team", "Value": "one"} in config["Tags"]


def test_no_call_of_the_provider_lacked_a_right(cloud: Cloud) -> None:
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
