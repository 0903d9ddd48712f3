"""`trainctl preflight`: the nodes' image is looked at as the deploy will look at it, in the same words."""

import sys
from typing import Any

import pytest

from ops.asset_code import asset_code
from ops.preflight.finding import Finding
from tests.unit.assets.cluster_image.image_fakes import GONE, NAME, OLD, VERSION, register, tagged
from tests.unit.ops.own_account import OwnAccount
from tests.unit.ops.preflight.test_checks import bad, findings
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.lookup import CLUSTER_IMAGE_CODE
from training_cluster.image.names import image_parameter
from training_cluster.rules.context import read_settings

STACK = f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}"
PARAMETER = image_parameter(read_settings({"image": "build"}))
IMAGE_MODULES = ("request", "region", "custom_ami", "official")
MADE = {"CreationDate": "2026-11-01T00:00:00.000Z"}
AGAIN = "aws imagebuilder start-image-pipeline-execution --image-pipeline-arn arn"


@pytest.fixture
def image(own: OwnAccount) -> str:
    """An image of one's own."""
    made = register(own.ec2)
    own.later(own.ec2.deregister_image, ImageId=made)
    return made


def _change(own: OwnAccount, id_: str, **members: Any) -> None:
    """Describe an image with other members; without any, not at all."""

    def change(said: dict[str, Any]) -> None:
        for each in [each for each in said["Images"] if each["ImageId"] == id_]:
            each.update(members) if members else said["Images"].remove(each)

    own.amend("DescribeImages", change)


def _of_the_image(own: OwnAccount, wanted: str) -> list[Finding]:
    found = findings(own, {"image": wanted})
    return [each for each in found if each.check.startswith(("image ", STACK))]


def test_own_images_are_judged_as_the_deploy_does(own: OwnAccount, image: str) -> None:
    _change(own, image, **MADE)
    (found,) = _of_the_image(own, image)
    assert (found.check, found.verdict) == (f"image {image}", "ok")
    assert found.found == f"{image} (training), of 2026-11-01, 35 GiB"
    _change(own, image, Tags=[])
    (warning,) = bad(own, {"image": image})
    assert warning.verdict == "warning"
    assert "has no tag parallelcluster:version and no tag parallelcluster:os" in warning.found
    _change(own, image, Tags=tagged(version="3.15.0"))
    (problem,) = bad(own, {"image": image})
    assert (problem.check, problem.verdict) == (f"image {image}", "problem")
    assert "it is for ParallelCluster 3.15.0" in problem.found
    assert "-c image=ami-..." in problem.mend
    own.account.amended.clear()
    (problem,) = bad(own, {"image": GONE})
    assert "aws ec2 copy-image --region us-east-1" in problem.found


@pytest.mark.parametrize("is_own", [True, False])
def test_the_head_node_image_is_always_official(own: OwnAccount, image: str, *, is_own: bool) -> None:
    wanted = image if is_own else "official"
    (there,) = (each for each in findings(own, {"image": wanted}) if each.check == "official image")
    assert there.found.startswith(f"{OLD} ({NAME}")
    _change(own, OLD)
    (problem,) = bad(own, {"image": wanted})
    assert (problem.check, problem.verdict) == ("official image", "problem")
    assert f"no official image of ParallelCluster {PCLUSTER_VERSION} for ubuntu2404" in problem.found


def test_the_first_build_tells_its_time_and_parent(own: OwnAccount) -> None:
    parent, build = _of_the_image(own, "build")
    assert (parent.check, parent.verdict) == (f"{STACK}: made from", "ok")
    assert parent.found.startswith(f"{OLD} ({NAME}")
    assert (build.check, build.verdict) == (STACK, "ok")
    # 90 minutes of an m6i.8xlarge at 1.536 an hour.
    assert build.found == (
        "missing: the first deploy builds an image, about 90 minutes and 2.30 USD, as estimated"
    )
    own.deploy(STACK, Parameter=PARAMETER)  # a stack that failed has built nothing yet
    assert _of_the_image(own, "build") == [parent, build]
    _change(own, OLD)
    parent, _ = _of_the_image(own, "build")
    assert parent.verdict == "problem"
    assert f"no official image of ParallelCluster {PCLUSTER_VERSION} for ubuntu2404" in parent.found


def test_a_lost_image_comes_with_the_build_command(own: OwnAccount, image: str) -> None:
    own.deploy(STACK, BuildAgain=AGAIN)
    (problem,) = _of_the_image(own, "build")
    assert f"without the parameter {PARAMETER}: the deploy would stop" in problem.found
    assert (problem.verdict, problem.mend) == ("problem", AGAIN)
    ssm = own.client("ssm")
    ssm.put_parameter(Name=PARAMETER, Value=image, Type="String")
    own.later(ssm.delete_parameter, Name=PARAMETER)
    _change(own, image, **MADE)
    (found,) = _of_the_image(own, "build")
    assert (found.check, found.verdict) == (f"{STACK}: newest image", "ok")
    assert found.found == f"{image} (training), of 2026-11-01, 35 GiB"
    _change(own, image, State="failed")
    (problem,) = _of_the_image(own, "build")
    assert "state is failed" in problem.found
    assert (problem.verdict, problem.mend) == ("problem", AGAIN)


def test_a_foreign_image_stack_matters_only_for_builds(own: OwnAccount) -> None:
    own.deploy(STACK, description="Their images")
    assert bad(own, {}) == []
    assert f"stack {STACK}" in {each.check for each in bad(own, {"image": "build"})}


def test_asset_code_leaves_no_plain_module_behind() -> None:
    before = {name: sys.modules.get(name) for name in IMAGE_MODULES}
    asset_code.cache_clear()
    code = asset_code("cluster_image", *IMAGE_MODULES)
    assert code.custom_ami.__file__ == str(CLUSTER_IMAGE_CODE / "custom_ami.py")
    assert {name: sys.modules.get(name) for name in before} == before
