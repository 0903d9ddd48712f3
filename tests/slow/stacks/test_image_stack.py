"""The nodes' image through ImageStack, its pipeline and an image of one's own. In order, on one local AWS."""

import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.deployed import read_deployed_cluster
from rehearsal.problems import RehearsalError
from rehearsal.validation.custom_amis import register_image
from tests.slow.conftest import Cloud
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.names import image_name, image_parameter, image_stack_name, parent_name
from training_cluster.rules.context import read_settings

pytestmark = pytest.mark.slow

FAMILY = "family=m6i"
SETTINGS = read_settings({"family": "m6i", "image": "build"})
STACK, CLUSTER_STACK = image_stack_name(SETTINGS), "TrainingClusterStack"


@pytest.fixture
def queue_image(cloud: Cloud) -> Callable[[], str | None]:
    """Return the image of the deployed cluster's queue."""

    def read() -> str | None:
        (queue,) = read_deployed_cluster(cloud.address, "training").config["Scheduling"]["SlurmQueues"]
        image: str | None = queue.get("Image", {}).get("CustomAmi")
        return image

    return read


def _newest(cloud: Cloud) -> str:
    parameter = cloud.client("ssm").get_parameter(Name=image_parameter(SETTINGS))["Parameter"]
    assert parameter["DataType"] == "aws:ec2:image"
    return str(parameter["Value"])


def _outputs(cloud: Cloud, name: str) -> dict[str, str]:
    stack = cloud.stack(name)
    assert stack
    return {each["OutputKey"]: each["OutputValue"] for each in stack["Outputs"]}


def _image(cloud: Cloud, image_id: str) -> dict[str, Any]:
    (image,) = cloud.client("ec2").describe_images(ImageIds=[image_id])["Images"]
    return dict(image)


def test_a_deploy_builds_the_image_for_the_queue(cloud: Cloud, queue_image: Callable[[], str | None]) -> None:
    cloud.deploy(FAMILY, "image=build")
    image, outputs = _image(cloud, _newest(cloud)), _outputs(cloud, STACK)
    assert queue_image() == image["ImageId"] == outputs["ImageId"]
    tags = {each["Key"]: each["Value"] for each in image["Tags"]}
    assert tags["parallelcluster:version"] == PCLUSTER_VERSION
    assert tags["parallelcluster:os"] == "ubuntu2404"
    assert tags["parallelcluster:build_status"] == "available"
    assert outputs["ParentImage"].startswith(parent_name(SETTINGS))


def test_the_next_deploy_takes_the_pipelines_image(
    cloud: Cloud, queue_image: Callable[[], str | None]
) -> None:
    former, outputs = _newest(cloud), _outputs(cloud, STACK)
    done = subprocess.run(
        outputs["BuildAgain"],
        shell=True,
        env=cloud.address.client_environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"image/{image_name(SETTINGS)}/1.0.0/2" in done.stdout
    newer = _newest(cloud)
    assert newer != former
    assert queue_image() == former
    cloud.deploy(FAMILY, "image=build")
    assert queue_image() == newer == _newest(cloud)
    assert _outputs(cloud, STACK)["ImageId"] == former  # the stack built nothing


def test_an_image_of_another_version_is_refused(cloud: Cloud, queue_image: Callable[[], str | None]) -> None:
    before = queue_image()
    old = register_image(cloud.address, "ubuntu2204", version="3.15.0")
    with pytest.raises(RehearsalError) as raised:
        cloud.deploy(FAMILY, f"image={old}")
    said = re.sub(r"\s+", " ", str(raised.value))
    assert f"image={old} (own-ubuntu2204-3.15.0) cannot be used: it is for ParallelCluster 3.15.0" in said
    assert queue_image() == before
    stack = cloud.stack(CLUSTER_STACK)
    assert stack and stack["StackStatus"] == "UPDATE_ROLLBACK_COMPLETE"


def test_back_to_official_the_image_stays(cloud: Cloud, queue_image: Callable[[], str | None]) -> None:
    cloud.deploy(FAMILY)
    assert queue_image() is None
    stack = cloud.stack(STACK)
    assert stack and stack["StackStatus"].endswith("_COMPLETE")
    assert _image(cloud, _newest(cloud))
