"""`trainctl destroy --plan`: ImageStacks, and the images that outlive them."""

import re
import shlex
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from ops.account.image_stacks import destroy_image_stack_command, image_stacks
from ops.teardown.images import PARAMETERS
from tests.unit.assets.cluster_image.image_fakes import VERSION
from tests.unit.ops.own_account import OURS, OwnAccount, Resources
from tests.unit.ops.teardown.test_remaining import untagged
from tests.unit.ops.teardown.test_teardown import in_order, make_log_group, plan
from training_cluster.catalog.families import load_base
from training_cluster.image.names import IMAGE_TAG, image_parameter, image_stack_name
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import IMAGE_ID, IMAGE_STACKS

STACK, OTHER_STACK = (f"TrainingCluster-Image-{each}-ubuntu2204-{VERSION}" for each in ("gpu", "volta"))
AMI, OLD = "ami-0aaaaaaaaaaaaaaaa", "ami-0bbbbbbbbbbbbbbbb"
PARAMETER = image_parameter(read_settings({"image": "build"}))
NAME = f"training-gpu-ubuntu2404-{VERSION}"
BUILDER = "arn:aws:imagebuilder:us-east-1:1:"
BUILD, RECIPE = f"{BUILDER}image/{NAME}/1.0.0/1", f"{BUILDER}image-recipe/{NAME}/1.0.0"
COMPONENT = f"{BUILDER}component/{NAME}/1.0.0/1"
OF_AN_IMAGE = [{"Key": IMAGE_TAG, "Value": NAME}]
THEIRS = [{"Key": "Name", "Value": "training-cluster"}]
Tags = list[dict[str, str]]
Stacks = dict[str, Resources]


def _image(id_: str, tags: Tags = OF_AN_IMAGE) -> dict[str, Any]:
    disk = {"DeviceName": "/dev/sda1", "Ebs": {"SnapshotId": id_.replace("ami-", "snap-"), "VolumeSize": 150}}
    none = {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"}
    return {"ImageId": id_, "Name": f"{NAME} {id_[-1]}", "Tags": tags, "BlockDeviceMappings": [none, disk]}


@pytest.fixture
def images(own: OwnAccount) -> Callable[..., str]:
    """Return the plan for everything and these images."""
    return partial(_images, own)


def _images(
    own: OwnAccount,
    *images: dict[str, Any],
    stacks: Stacks | None = None,
    taken_by: dict[str, str] | None = None,
    gib: dict[str, int] | None = None,
) -> str:
    """Answer with what Image Builder keeps of ours, and of others by the same name."""

    def described(asked: dict[str, Any]) -> Any:
        assert asked["Owners"] == ["self"]
        return {"Images": list(images)}

    def by_path(asked: dict[str, Any]) -> Any:
        here = asked["Path"] == PARAMETERS
        return {"Parameters": [{"Name": PARAMETER, "Value": AMI}] if here else []}

    def versions(asked: dict[str, Any]) -> Any:
        assert asked["Versions"] == ["$Latest", "$Default"]
        templates = (taken_by or {}).items()
        return {
            "LaunchTemplateVersions": [
                {"LaunchTemplateName": name, "LaunchTemplateData": {"ImageId": id_}}
                for name, id_ in templates
            ]
        }

    ours, theirs = {each["Key"]: each["Value"] for each in OURS}, {"Name": "theirs"}
    answers: dict[str, Any] = {
        "DescribeImages": described,
        "DescribeSnapshots": {
            "Snapshots": [
                {"SnapshotId": id_, "FullSnapshotSizeInBytes": size * 2**30}
                for id_, size in (gib or {}).items()
            ]
        },
        "DescribeLaunchTemplateVersions": versions,
        "GetParametersByPath": by_path,
        "ListImages": {"imageVersionList": [{"arn": BUILD.rpartition("/")[0]}]},
        "ListImageBuildVersions": {
            "imageSummaryList": [
                {"arn": BUILD, "tags": {IMAGE_TAG: NAME}},
                {"arn": f"{BUILDER}image/theirs/1.0.0/1", "tags": theirs},
            ]
        },
        "ListImageRecipes": {
            "imageRecipeSummaryList": [
                {"arn": RECIPE, "tags": ours},
                {"arn": f"{BUILDER}image-recipe/theirs/1.0.0", "tags": theirs},
            ]
        },
        "ListComponents": {"componentVersionList": [{"arn": COMPONENT.rpartition("/")[0]}]},
        "ListComponentBuildVersions": {
            "componentSummaryList": [
                {"arn": COMPONENT, "tags": ours},
                {"arn": f"{BUILDER}component/theirs/1.0.0/1"},
            ]
        },
    }
    own.show_stacks(own.stacks | {STACK: {}, OTHER_STACK: {}} if stacks is None else stacks)
    own.account.answers |= answers
    return plan(own)


def _commands(shown: str) -> str:
    return shown[shown.index("To delete everything") :]


def test_image_stacks_go_between_clusters_and_network(images: Callable[..., str]) -> None:
    shown = images()
    assert f"  {STACK}  CREATE_COMPLETE, free but for what its builds take" in shown
    for stack, family in {STACK: "p4d", OTHER_STACK: "p3dn"}.items():
        destroy = (
            f"npx cdk destroy ImageStack --exclusively -c image=build -c family={family} -c os=ubuntu2204"
        )
        assert in_order(
            _commands(shown),
            "npx cdk destroy TrainingClusterStack\n",
            stack,
            destroy,
            "destroy StorageStack",
            "npx cdk destroy NetworkStack",
        )
    assert in_order(
        shown,
        f"aws imagebuilder delete-image --image-build-version-arn {BUILD}\n",
        f"aws imagebuilder delete-image-recipe --image-recipe-arn {RECIPE}\n",
        f"aws imagebuilder delete-component --component-build-version-arn {COMPONENT}\n",
    )
    assert "theirs" not in shown


def test_each_destroy_command_deletes_exactly_one_image_stack() -> None:
    recipes = {read_settings({"family": name}).family_facts.image_recipe for name in ("p4d", "trn1", "m6i")}
    built = {name.removeprefix(IMAGE_STACKS).partition("-")[0] for name in image_stacks()}
    assert built == set(load_base().image_recipes) > recipes
    for name in image_stacks():
        words = shlex.split(destroy_image_stack_command(name))
        assert words[:5] == ["npx", "cdk", "destroy", IMAGE_ID, "--exclusively"]
        flags = dict(word.split("=") for word in words[5:] if word != "-c")
        assert image_stack_name(read_settings(flags)) == name


def test_stacks_of_other_releases_go_before_the_network(own: OwnAccount, images: Callable[..., str]) -> None:
    older = f"{STACK.removesuffix(VERSION)}3-15-0"
    shown = images(stacks=own.stacks | {older: {}})
    assert f"  {older}  CREATE_COMPLETE" in shown
    delete = f"aws cloudformation delete-stack --stack-name {older} && "
    wait = f"aws cloudformation wait stack-delete-complete --stack-name {older}\n"
    assert in_order(_commands(shown), delete, wait, "npx cdk destroy NetworkStack")


def test_unused_images_go_with_snapshots_after_their_stack(images: Callable[..., str]) -> None:
    theirs = "ami-0cccccccccccccccc"
    whole = images(_image(AMI), _image(OLD), _image(theirs, tags=THEIRS))
    assert theirs not in whole
    shown = _commands(whole)
    for id_ in (AMI, OLD):
        snapshot = id_.replace("ami-", "snap-")
        assert in_order(
            shown,
            f"destroy {IMAGE_ID}",
            f"aws ec2 deregister-image --image-id {id_}\naws ec2 delete-snapshot --snapshot-id {snapshot}\n",
        )
    assert f"aws ssm delete-parameter --name {PARAMETER}\n" in shown


def test_an_image_a_queue_takes_is_kept(images: Callable[..., str]) -> None:
    queue = "training-p4d-p4d"
    shown = images(_image(AMI), _image(OLD), taken_by={queue: AMI})
    assert f"deregister-image --image-id {OLD}" in shown
    for kept in (f"--image-id {AMI}", AMI.replace("ami-", "snap-"), f"delete-parameter --name {PARAMETER}"):
        assert kept not in _commands(shown)
    assert in_order(
        shown, f"in use: {queue}", f"{AMI} is in no command above", f"{queue}. Once they are gone"
    )
    assert "is in no command above" not in images(_image(AMI))


def test_images_cost_what_their_snapshots_store(images: Callable[..., str]) -> None:
    shown = images(_image(AMI), gib={AMI.replace("ami-", "snap-"): 80})
    line = next(line for line in shown.splitlines() if AMI in line)
    # 80 GiB x 0.05.
    assert re.search(rf"{AMI}  image {NAME} a, snapshots of 80 GiB +4$", line)
    assert "costs about 292 USD a month" in shown  # 288 without it
    assert re.search(
        rf"{AMI}  image .*, snapshots of 150 GiB +8  at most: what was never", images(_image(AMI))
    )


def test_images_are_found_without_their_stacks(images: Callable[..., str]) -> None:
    shown = images(_image(OLD), stacks={"TrainingCluster-Network": {}})
    assert f"--image-id {OLD}" in shown
    assert f"destroy {IMAGE_ID}" not in shown


@pytest.mark.parametrize("foreign", [(), (STACK,)])
def test_only_logs_of_our_image_stacks_are_named(own: OwnAccount, foreign: tuple[str, ...]) -> None:
    log, of_lambda = f"{STACK}-ParentLog1", f"/aws/lambda/{STACK}-Handler1"
    handler = ("AWS::Lambda::Function", f"{STACK}-Handler1", None)
    own.show_stacks({STACK: {"Handler": handler}, "TrainingCluster-Network": {}}, foreign=foreign)
    make_log_group(own, log, is_ours=not foreign)
    make_log_group(own, of_lambda)
    shown = plan(own)
    for name in (log, of_lambda):
        assert (f"--log-group-name {name}\n" in shown) == (not foreign)
    assert shown.startswith(f"{STACK} is not Training Cluster's") == bool(foreign)


def test_similarly_named_stacks_are_not_ours(own: OwnAccount) -> None:
    own.show_stacks({"TrainingCluster-Image-mine": {}})
    untagged(own)
    assert plan(own) == "There is nothing of Training Cluster in us-east-1."


def test_retained_parts_of_image_stacks_carry_the_tags(synthesise: Callable[..., Any]) -> None:
    resources = synthesise(image="build", family="m6i")[IMAGE_ID].to_json()["Resources"].values()
    (shared,) = OURS
    by_type = {each["Type"]: each["Properties"] for each in resources}
    for kind in ("ImageRecipe", "Component"):
        assert by_type[f"AWS::ImageBuilder::{kind}"]["Tags"][shared["Key"]] == shared["Value"]
    assert IMAGE_TAG in by_type["AWS::ImageBuilder::Image"]["Tags"]
    assert IMAGE_TAG in by_type["AWS::ImageBuilder::ImagePipeline"]["ImageTags"]
    (spread,) = by_type["AWS::ImageBuilder::DistributionConfiguration"]["Distributions"]
    assert IMAGE_TAG in spread["AmiDistributionConfiguration"]["AmiTags"]
    (published,) = spread["SsmParameterConfigurations"]
    assert published["ParameterName"].startswith(f"{PARAMETERS}/")
