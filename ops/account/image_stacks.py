"""The ImageStacks that there can be: one for each recipe, operating system and version of ParallelCluster."""

from __future__ import annotations

import re
from functools import cache

from training_cluster.catalog.families import family_names, load_base, load_family
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.image.names import IMAGES, ROOT_DEVICES, image_stack_name
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import IMAGE_ID, IMAGE_STACKS

_VERSION = re.compile(r"\d+-\d+-\d+$")


@cache
def image_stacks() -> dict[str, Settings]:
    """List the settings that make each of this release's, by its name in CloudFormation."""
    default = read_settings({}).family
    found: dict[str, Settings] = {}
    for family in sorted(family_names(), key=lambda name: (name != default, name)):
        load_family(family)  # what is wrong with its file is no answer to the next question
        for os in ROOT_DEVICES:
            try:
                settings = read_settings({"image": "build", "family": family, "os": os})
            except ConfigurationError:  # no node of the family runs on it
                continue
            found.setdefault(image_stack_name(settings), settings)
    return found


def is_image_stack(name: str) -> bool:
    """Tell whether a stack of this name may be one of them, of this release or of another."""
    return name.startswith(IMAGE_STACKS) and _in_this_release(name) in image_stacks()


def _in_this_release(name: str) -> str:
    """Name the stack that this release would have for the same recipe and system."""
    return _VERSION.sub(PCLUSTER_VERSION.replace(".", "-"), name)


def image_of_stack(name: str) -> str:
    """Name its images, their recipe and their logs."""
    return f"{IMAGES}{name.removeprefix(IMAGE_STACKS)}"


def usual_min(name: str) -> int:
    """Give the minutes of one of its builds, as estimated."""
    recipe = image_stacks()[_in_this_release(name)].family_facts.image_recipe
    return load_base().image_recipes[recipe].usual_min


def image_stack_flags(name: str) -> str:
    """The flags that say which of them `ImageStack` is to the CDK, which knows all by this one id."""
    settings = image_stacks()[name]
    return f"-c image=build -c family={settings.family} -c os={settings.os_name}"


def destroy_image_stack(name: str) -> str:
    """Write the command that destroys one. Without --exclusively the CDK destroys the cluster, too."""
    if name not in image_stacks():  # the CDK of this release knows no stack of another
        delete, wait = (
            f"aws cloudformation {word}" for word in ("delete-stack", "wait stack-delete-complete")
        )
        return f"{delete} --stack-name {name} && {wait} --stack-name {name}"
    return f"npx cdk destroy {IMAGE_ID} --exclusively {image_stack_flags(name)}"
