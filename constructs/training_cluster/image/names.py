"""What the images of a recipe and an operating system are called, wherever they are named. No CDK here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.stack_names import IMAGE_STACKS

if TYPE_CHECKING:
    from training_cluster.flags.settings import Settings

IMAGE_TAG = "training-cluster:image"
"""Key of the tag of images, and of what Image Builder knows of them, that says which kind they are of."""
CONTENT_TAG = "training-cluster:content"
"""Key of the tag with a digest of what an image is made of."""

# The official images' (EC2 guides of Ubuntu and Amazon Linux): a mapping of another name would add a disk.
ROOT_DEVICES = {"ubuntu2204": "/dev/sda1", "ubuntu2404": "/dev/sda1", "alinux2023": "/dev/xvda"}

_OFFICIAL_PARTS = {
    "ubuntu2204": "ubuntu-2204-lts-hvm",
    "ubuntu2404": "ubuntu-2404-lts-hvm",
    "alinux2023": "amzn2023-hvm",
}


IMAGES = "training-"
"""Beginning of the names of images."""
NODE_ARCHITECTURE = "x86_64"
"""Processor architecture of every family's nodes."""


def _kind(settings: Settings) -> str:
    """Name the recipe, the system and ParallelCluster's version.

    The version, since clusters of two releases of this app run side by side while people move to the newer
    one: in one stack, each deploy of one would build anew and take the image from the other.
    """
    return f"{settings.family_facts.image_recipe}-{settings.os_name}-{PCLUSTER_VERSION.replace('.', '-')}"


def image_name(settings: Settings) -> str:
    """Name the image, its recipe, pipeline and logs. Fixed: Image Builder counts versions itself."""
    return f"{IMAGES}{_kind(settings)}"


def image_stack_name(settings: Settings) -> str:
    """Name ImageStack as CloudFormation does: clusters of another kind of image have one of their own."""
    return f"{IMAGE_STACKS}{_kind(settings)}"


def image_parameter(settings: Settings) -> str:
    """Name of the SSM parameter that holds the id of the AMI that was built last for these settings.

    It begins as Image Builder's service-linked role wants it, which may write no other (managed policy
    AWSServiceRoleForImageBuilder, version 25): so it needs no role of ours.
    """
    recipe = settings.family_facts.image_recipe
    return f"/imagebuilder/training-cluster/{PCLUSTER_VERSION}/{settings.os_name}/{recipe}"


def parent_name(settings: Settings) -> str:
    """How the name of the official image begins that ours are made from; assets/cluster_image finds it."""
    return f"aws-parallelcluster-{PCLUSTER_VERSION}-{_OFFICIAL_PARTS[settings.os_name]}-{NODE_ARCHITECTURE}"


def image_tags(settings: Settings) -> dict[str, str]:
    """Tags of the AMI. Those of ParallelCluster are what its validators look for: CustomAmiTagValidator
    refuses a version without a build status, AmiOsCompatibleValidator another system.
    """
    return {
        "parallelcluster:version": PCLUSTER_VERSION,
        "parallelcluster:os": settings.os_name,
        "parallelcluster:build_status": "available",
        IMAGE_TAG: image_name(settings),
        CLUSTER_TAG: SHARED,
        **settings.own_tags,
    }
