"""Names and tags of the images of a recipe and an operating system. The module imports no CDK."""

from training_cluster.flags.account import CLUSTER_TAG, SHARED
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.stack_names import IMAGE_STACKS

IMAGE_TAG = "training-cluster:image"
"""Key of the tag with the kind of image, on images and on Image Builder's resources of them."""
CONTENT_TAG = "training-cluster:content"
"""Key of the tag with a digest of an image's content."""

# From the official images (EC2 guides of Ubuntu and Amazon Linux): a mapping of another name adds a disk.
ROOT_DEVICES = {"ubuntu2204": "/dev/sda1", "ubuntu2404": "/dev/sda1", "alinux2023": "/dev/xvda"}

_OFFICIAL_PARTS = {
    "ubuntu2204": "ubuntu-2204-lts-hvm",
    "ubuntu2404": "ubuntu-2404-lts-hvm",
    "alinux2023": "amzn2023-hvm",
}

IMAGES = "training-"
"""Prefix of the names of images."""
NODE_ARCHITECTURE = "x86_64"
"""Processor architecture of built images and of their parents."""


def _kind(settings: Settings) -> str:
    """Name a kind of image by recipe, operating system and ParallelCluster's version.

    The version is included because clusters of two releases of this app run side by side while people move
    to the newer one: with one stack, a deploy of either would rebuild the image and take it from the other.
    """
    return f"{settings.family_facts.image_recipe}-{settings.os_name}-{PCLUSTER_VERSION.replace('.', '-')}"


def image_name(settings: Settings) -> str:
    """Name the image, its recipe, pipeline and logs. It is fixed: Image Builder counts versions itself."""
    return f"{IMAGES}{_kind(settings)}"


def image_stack_name(settings: Settings) -> str:
    """Name ImageStack in CloudFormation: each kind of image has its own."""
    return f"{IMAGE_STACKS}{_kind(settings)}"


def image_parameter(settings: Settings) -> str:
    """Name the SSM parameter with the id of the newest AMI for these settings.

    Its prefix is the one that Image Builder's service-linked role may write (managed policy
    AWSServiceRoleForImageBuilder, version 25), so the app creates no role.
    """
    recipe = settings.family_facts.image_recipe
    return f"/imagebuilder/training-cluster/{PCLUSTER_VERSION}/{settings.os_name}/{recipe}"


def parent_name(settings: Settings) -> str:
    """Return the prefix of the official parent image's name; assets/cluster_image finds the image by it."""
    return f"aws-parallelcluster-{PCLUSTER_VERSION}-{_OFFICIAL_PARTS[settings.os_name]}-{NODE_ARCHITECTURE}"


def image_tags(settings: Settings) -> dict[str, str]:
    """Return the tags of the AMI.

    ParallelCluster's validators read its own tags: CustomAmiTagValidator refuses a version without a build
    status, AmiOsCompatibleValidator another operating system.
    """
    return {
        "parallelcluster:version": PCLUSTER_VERSION,
        "parallelcluster:os": settings.os_name,
        "parallelcluster:build_status": "available",
        IMAGE_TAG: image_name(settings),
        CLUSTER_TAG: SHARED,
        **settings.own_tags,
    }
