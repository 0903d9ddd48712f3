"""`trainctl preflight`: the nodes' image is looked at as the deploy will look at it, in the same words."""

import sys
from collections.abc import Callable
from typing import Any

import pytest

from ops.asset_code import asset_code
from ops.preflight.finding import Finding
from tests.unit.assets.cluster_image import image_fakes
from tests.unit.assets.cluster_image.image_fakes import OLD, OWN, VERSION, image, tagged
from tests.unit.ops.preflight.preflight_network import Network, bad, findings
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.lookup import CLUSTER_IMAGE_CODE
from training_cluster.image.names import image_parameter
from training_cluster.rules.context import read_settings

STACK = f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}"
PARAMETER = image_parameter(read_settings({"image": "build"}))
IMAGE_MODULES = ("request", "region", "custom_ami", "official")
AGAIN = "aws imagebuilder start-image-pipeline-execution --image-pipeline-arn arn"


def _of_the_image(network: Network, **flags: str) -> list[Finding]:
    return [each for each in findings(network, **flags) if each.check.startswith(("image ", STACK))]


def _built() -> Network:
    network = Network()
    network.image_stack = {"BuildAgain": AGAIN}
    network.parameters[PARAMETER] = OWN
    return network


def test_your_own_image_is_named_with_its_size() -> None:
    (found,) = _of_the_image(Network(), image=OWN)
    assert (found.check, found.verdict) == (f"image {OWN}", "ok")
    assert found.found == f"{OWN} (training), of 2026-11-01, 35 GiB"


@pytest.mark.parametrize(
    ("described", "why"),
    [
        (image(Tags=tagged(version="3.15.0")), "it is for ParallelCluster 3.15.0"),
        (image(Tags=tagged(os="alinux2023")), "the cluster's os is ubuntu2404"),
        (image(Tags=tagged(build_status=None)), "aws ec2 create-tags"),
        (image(Tags=tagged(), Architecture="arm64"), "it is for arm64, and the nodes are x86_64"),
        (image(Tags=tagged(), State="pending"), "its state is pending"),
        (image(Tags=tagged(), root_gib=2000), "its root volume has 2000 GiB"),
    ],
)
def test_an_image_the_deploy_refuses_is_a_problem(described: dict[str, Any], why: str) -> None:
    network = Network()
    network.images[OWN] = described
    (problem,) = bad(network, image=OWN)
    assert (problem.check, problem.verdict) == (f"image {OWN}", "problem")
    assert why in problem.found
    assert "-c image=ami-..." in problem.mend


def test_images_of_other_regions_get_a_copy_command() -> None:
    (problem,) = bad(Network(), image="ami-0ffffffffffffffff")
    assert problem.verdict == "problem"
    assert "aws ec2 copy-image --region us-east-1" in problem.found


def test_an_image_without_its_tags_is_a_warning() -> None:
    network = Network()
    network.images[OWN] = image()
    (warning,) = bad(network, image=OWN)
    assert warning.verdict == "warning"
    assert "has no tag parallelcluster:version and no tag parallelcluster:os" in warning.found


@pytest.mark.parametrize("wanted", ["official", OWN])
def test_the_head_node_image_is_always_official(wanted: str) -> None:
    (there,) = (each for each in findings(Network(), image=wanted) if each.check == "official image")
    assert there.found.startswith(f"{OLD} (aws-parallelcluster-{PCLUSTER_VERSION}-ubuntu-2404-lts-hvm-x86_64")
    network = Network()
    del network.images[OLD]
    (problem,) = bad(network, image=wanted)
    assert (problem.check, problem.verdict) == ("official image", "problem")
    assert f"no official image of ParallelCluster {PCLUSTER_VERSION} for ubuntu2404" in problem.found


def test_the_first_build_tells_its_time_and_parent() -> None:
    parent, build = _of_the_image(Network(), image="build")
    assert (parent.check, parent.verdict) == (f"{STACK}: made from", "ok")
    assert parent.found.startswith(
        f"{OLD} (aws-parallelcluster-{PCLUSTER_VERSION}-ubuntu-2404-lts-hvm-x86_64"
    )
    assert (build.check, build.verdict) == (STACK, "ok")
    # 90 minutes of an m6i.8xlarge at 1.536 an hour.
    assert build.found == (
        "missing: the first deploy builds an image, about 90 minutes and 2.30 USD, as estimated"
    )


def test_a_build_without_official_image_is_a_problem() -> None:
    network = Network()
    del network.images[OLD]
    parent, _ = _of_the_image(network, image="build")
    assert parent.verdict == "problem"
    assert f"no official image of ParallelCluster {PCLUSTER_VERSION} for ubuntu2404" in parent.found


def test_a_stack_that_failed_has_built_nothing_yet() -> None:
    network = Network()
    network.image_stack = {"Parameter": PARAMETER}
    assert "the first deploy builds an image" in _of_the_image(network, image="build")[-1].found


def test_the_built_image_in_the_parameter_is_named() -> None:
    (found,) = _of_the_image(_built(), image="build")
    assert (found.check, found.verdict) == (f"{STACK}: newest image", "ok")
    assert found.found == f"{OWN} (training), of 2026-11-01, 35 GiB"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            lambda network: network.parameters.pop(PARAMETER),
            f"without the parameter {PARAMETER}: the deploy would stop",
        ),
        (lambda network: network.images.pop(OWN), "us-east-1 has no such image for this account"),
        (
            lambda network: network.images.update({OWN: image(Tags=tagged(), State="failed")}),
            "state is failed",
        ),
    ],
)
def test_a_lost_image_comes_with_the_build_command(change: Callable[[Network], Any], why: str) -> None:
    network = _built()
    change(network)
    (problem,) = _of_the_image(network, image="build")
    assert problem.verdict == "problem"
    assert why in problem.found
    assert problem.mend == AGAIN


def test_a_foreign_image_stack_matters_only_for_builds() -> None:
    network = _built()
    network.description = "Their images"
    assert bad(network) == []
    assert f"stack {STACK}" in {each.check for each in bad(network, image="build")}


def test_asset_code_leaves_no_plain_module_behind() -> None:
    before = {name: sys.modules.get(name) for name in IMAGE_MODULES}
    asset_code.cache_clear()
    code = asset_code("cluster_image", *IMAGE_MODULES)
    assert code.custom_ami.__file__ == str(CLUSTER_IMAGE_CODE / "custom_ami.py")
    assert {name: sys.modules.get(name) for name in before} == before


def test_asset_code_uses_the_client_of_the_session() -> None:
    network = Network()
    account = network.account()
    region = asset_code("cluster_image", *IMAGE_MODULES).region.Region(account.client("ec2"))
    assert region.image(OWN).name == image_fakes.image()["Name"]
    assert [each.id for each in region.official_images("aws-parallelcluster-")] == [OLD]
    assert account.asked == ["DescribeImages", "DescribeImages"]
