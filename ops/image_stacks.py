"""The ImageStacks that there can be: one for each image recipe and operating system."""

from __future__ import annotations

from functools import cache

from training_cluster.families import family_names, load_base, load_family
from training_cluster.image_names import ROOT_DEVICES, image_name, image_stack_name
from training_cluster.problems import ConfigurationError
from training_cluster.settings import Settings
from training_cluster.stack_names import IMAGE_ID, IMAGE_STACKS


@cache
def image_stacks() -> dict[str, Settings]:
    """Settings that make each of them, by its name in CloudFormation."""
    default = Settings.from_context({}).family
    found: dict[str, Settings] = {}
    for family in sorted(family_names(), key=lambda name: (name != default, name)):
        load_family(family)  # what is wrong with its file is no answer to the next question
        for os in ROOT_DEVICES:
            try:
                settings = Settings.from_context({"image": "build", "family": family, "os": os})
            except ConfigurationError:  # no node of the family runs on it
                continue
            found.setdefault(image_stack_name(settings), settings)
    return found


def is_image_stack(name: str) -> bool:
    """Whether a stack of this name may be one of them."""
    return name.startswith(IMAGE_STACKS) and name in image_stacks()


def image_of_stack(name: str) -> str:
    """What its images, their recipe and their logs are called."""
    return image_name(image_stacks()[name])


def usual_min(name: str) -> int:
    """Minutes of one of its builds, as estimated."""
    return load_base().image_recipes[image_stacks()[name].family_facts.image_recipe].usual_min


def image_stack_flags(name: str) -> str:
    """The flags that say which of them `ImageStack` is to the CDK, which knows all by this one id."""
    settings = image_stacks()[name]
    return f"-c image=build -c family={settings.family} -c os={settings.system}"


def destroy_image_stack(name: str) -> str:
    """The command that takes one of them. Without --exclusively the CDK takes the cluster along, too."""
    return f"npx cdk destroy {IMAGE_ID} --exclusively {image_stack_flags(name)}"
