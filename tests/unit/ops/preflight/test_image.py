"""`trainctl preflight`: the nodes' image is looked at as the deploy will look at it, in the same words."""

import sys
from typing import Any

import pytest

from ops.asset_code import asset_code
from ops.preflight.finding import Finding
from tests.unit.assets.cluster_image import image_fakes
from tests.unit.assets.cluster_image.image_fakes import OLD, OWN, VERSION, image, tagged
from tests.unit.ops.fake_account import Refused
from tests.unit.ops.own_account import OwnAccount
from tests.unit.ops.preflight.test_checks import bad, findings
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.image.lookup import CLUSTER_IMAGE_CODE
from training_cluster.image.names import image_parameter
from training_cluster.rules.context import read_settings

STACK = f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}"
PARAMETER = image_parameter(read_settings({"image": "build"}))
IMAGE_MODULES = ("request", "region", "custom_ami", "official")
_MISSING = Refused("InvalidAMIID.NotFound")
AGAIN = "aws imagebuilder start-image-pipeline-execution --image-pipeline-arn arn"


@pytest.fixture
def images(own: OwnAccount) -> dict[str, dict[str, Any]]:
    """The images of the account's region, by id."""
    found = {OWN: image(Tags=tagged()), OLD: image_fakes.official()}

    def answer(asked: dict[str, Any]) -> Any:
        if "ImageIds" in asked:
            ids = [each for each in asked["ImageIds"] if each in found]
            return {"Images": [{"ImageId": id_} | found[id_] for id_ in ids]} if ids else _MISSING
        (pattern,) = next(each["Values"] for each in asked["Filters"] if each["Name"] == "name")
        official = [
            {"ImageId": id_} | each
            for id_, each in found.items()
            if "ImageOwnerAlias" in each and each["Name"].startswith(pattern.rstrip("*"))
        ]
        return {"Images": official}

    own.account.answers["DescribeImages"] = answer
    return found


def _of_the_image(own: OwnAccount, wanted: str) -> list[Finding]:
    found = findings(own, {"image": wanted})
    return [each for each in found if each.check.startswith(("image ", STACK))]


def test_own_images_are_judged_as_the_deploy_does(own: OwnAccount, images: dict[str, dict[str, Any]]) -> None:
    (found,) = _of_the_image(own, OWN)
    assert (found.check, found.verdict) == (f"image {OWN}", "ok")
    assert found.found == f"{OWN} (training), of 2026-11-01, 35 GiB"
    images[OWN] = image()
    (warning,) = bad(own, {"image": OWN})
    assert warning.verdict == "warning"
    assert "has no tag parallelcluster:version and no tag parallelcluster:os" in warning.found
    images[OWN] = image(Tags=tagged(version="3.15.0"), root_gib=2000)
    (problem,) = bad(own, {"image": OWN})
    assert (problem.check, problem.verdict) == (f"image {OWN}", "problem")
    assert "it is for ParallelCluster 3.15.0" in problem.found
    assert "its root volume has 2000 GiB" in problem.found
    assert "-c image=ami-..." in problem.mend
    del images[OWN]
    (problem,) = bad(own, {"image": OWN})
    assert "aws ec2 copy-image --region us-east-1" in problem.found


@pytest.mark.parametrize("wanted", ["official", OWN])
def test_the_head_node_image_is_always_official(
    wanted: str, own: OwnAccount, images: dict[str, dict[str, Any]]
) -> None:
    (there,) = (each for each in findings(own, {"image": wanted}) if each.check == "official image")
    assert there.found.startswith(f"{OLD} (aws-parallelcluster-{PCLUSTER_VERSION}-ubuntu-2404-lts-hvm-x86_64")
    del images[OLD]
    (problem,) = bad(own, {"image": wanted})
    assert (problem.check, problem.verdict) == ("official image", "problem")
    assert f"no official image of ParallelCluster {PCLUSTER_VERSION} for ubuntu2404" in problem.found


def test_the_first_build_tells_its_time_and_parent(
    own: OwnAccount, images: dict[str, dict[str, Any]]
) -> None:
    parent, build = _of_the_image(own, "build")
    assert (parent.check, parent.verdict) == (f"{STACK}: made from", "ok")
    assert parent.found.startswith(f"{OLD} (aws-parallelcluster-{PCLUSTER_VERSION}-ubuntu-2404-lts-hvm-")
    assert (build.check, build.verdict) == (STACK, "ok")
    # 90 minutes of an m6i.8xlarge at 1.536 an hour.
    assert build.found == (
        "missing: the first deploy builds an image, about 90 minutes and 2.30 USD, as estimated"
    )
    own.deploy(STACK, Parameter=PARAMETER)  # a stack that failed has built nothing yet
    assert _of_the_image(own, "build") == [parent, build]
    del images[OLD]
    parent, _ = _of_the_image(own, "build")
    assert parent.verdict == "problem"
    assert f"no official image of ParallelCluster {PCLUSTER_VERSION} for ubuntu2404" in parent.found


def test_a_lost_image_comes_with_the_build_command(
    own: OwnAccount, images: dict[str, dict[str, Any]]
) -> None:
    own.deploy(STACK, BuildAgain=AGAIN)
    (problem,) = _of_the_image(own, "build")
    assert f"without the parameter {PARAMETER}: the deploy would stop" in problem.found
    assert (problem.verdict, problem.mend) == ("problem", AGAIN)
    ssm = own.client("ssm")
    ssm.put_parameter(Name=PARAMETER, Value=OWN, Type="String")
    own.later(ssm.delete_parameter, Name=PARAMETER)
    (found,) = _of_the_image(own, "build")
    assert (found.check, found.verdict) == (f"{STACK}: newest image", "ok")
    assert found.found == f"{OWN} (training), of 2026-11-01, 35 GiB"
    images[OWN] = image(Tags=tagged(), State="failed")
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


def test_asset_code_uses_the_client_of_the_session(
    own: OwnAccount, images: dict[str, dict[str, Any]]
) -> None:
    region = asset_code("cluster_image", *IMAGE_MODULES).region.Region(own.client("ec2"))
    assert region.image(OWN).name == images[OWN]["Name"]
    assert [each.id for each in region.official_images("aws-parallelcluster-")] == [OLD]
    assert own.account.asked == ["DescribeImages", "DescribeImages"]
