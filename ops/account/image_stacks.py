"""The possible ImageStacks: one for each recipe, operating system and version of ParallelCluster."""

import re
from functools import cache

from ops.account.session import ClientOf, read_parameter
from training_cluster.catalog.families import family_names, load_base, load_family
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.image.names import IMAGES, ROOT_DEVICES, image_parameter, image_stack_name
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import IMAGE_ID, IMAGE_STACKS

_VERSION = re.compile(r"\d+-\d+-\d+$")


@cache
def image_stacks() -> dict[str, Settings]:
    """Return the settings of each ImageStack of this release, by its name in CloudFormation."""
    default = read_settings({}).family
    found: dict[str, Settings] = {}
    for family in sorted(family_names(), key=lambda name: (name != default, name)):
        load_family(family)  # an error in its file must not be taken for a combination that is not supported
        for os in ROOT_DEVICES:
            try:
                settings = read_settings({"image": "build", "family": family, "os": os})
            except ConfigurationError:  # the family does not support this operating system
                continue
            found.setdefault(image_stack_name(settings), settings)
    return found


def is_image_stack(name: str) -> bool:
    """Return True if a stack of this name is an ImageStack, of this release or of another."""
    return name.startswith(IMAGE_STACKS) and _in_this_release(name) in image_stacks()


def _in_this_release(name: str) -> str:
    """Return the name of this release's stack for the same recipe and operating system."""
    return _VERSION.sub(PCLUSTER_VERSION.replace(".", "-"), name)


def image_of_stack(name: str) -> str:
    """Return the name of an ImageStack's images, their recipe and their logs."""
    return f"{IMAGES}{name.removeprefix(IMAGE_STACKS)}"


def usual_min(name: str) -> int:
    """Return the estimated duration of one build of an ImageStack, in minutes."""
    recipe = image_stacks()[_in_this_release(name)].family_facts.image_recipe
    return load_base().image_recipes[recipe].usual_min


def image_stack_flags(name: str) -> str:
    """Return the flags that select an ImageStack, because the CDK has one id for all of them."""
    settings = image_stacks()[name]
    return f"-c image=build -c family={settings.family} -c os={settings.os_name}"


def destroy_image_stack_command(name: str) -> str:
    """Return the command that destroys an ImageStack; --exclusively keeps the CDK from the cluster."""
    if name not in image_stacks():  # the CDK of this release does not know stacks of other releases
        return (
            f"aws cloudformation delete-stack --stack-name {name} && "
            f"aws cloudformation wait stack-delete-complete --stack-name {name}"
        )
    return f"npx cdk destroy {IMAGE_ID} --exclusively {image_stack_flags(name)}"


def node_image_id(settings: Settings, client: ClientOf) -> str | None:
    """Return the nodes' AMI; None for ParallelCluster's own, and for one that was never built."""
    if settings.node_image == "build":
        return read_parameter(image_parameter(settings), client("ssm"))
    return None if settings.node_image == "official" else settings.node_image
