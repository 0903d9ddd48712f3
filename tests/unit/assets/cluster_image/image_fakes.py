"""Images as EC2 describes them."""

from typing import Any

from training_cluster.flags.cluster import PCLUSTER_VERSION

VERSION = PCLUSTER_VERSION.replace(".", "-")
"""ParallelCluster's version, as the names of ImageStacks and images end."""
STACK_NAME = f"TrainingCluster-Image-gpu-ubuntu2404-{VERSION}"
STACK = f"arn:aws:cloudformation:us-east-1:123456789012:stack/{STACK_NAME}/1"
OWN, OLD, NEW = "ami-0123456789abcdef0", "ami-0aaaaaaaaaaaaaaaa", "ami-0bbbbbbbbbbbbbbbb"
TAGS = {
    "parallelcluster:version": PCLUSTER_VERSION,
    "parallelcluster:os": "ubuntu2404",
    "parallelcluster:build_status": "available",
}


def official(
    *,
    os_part: str = "ubuntu-2404-lts-hvm",
    version: str = PCLUSTER_VERSION,
    created: str = "2026-10-01",
    **more: Any,
) -> dict[str, Any]:
    """Describe an official image as EC2 does: without tags, which another account's image does not show."""
    name = f"aws-parallelcluster-{version}-{os_part}-x86_64-{created.replace('-', '')}0000"
    return image(name=name, ImageOwnerAlias="amazon", CreationDate=f"{created}T00:00:00.000Z", **more)


def image(*, name: str = "training", root_gib: int = 35, **more: Any) -> dict[str, Any]:
    """Describe an image as EC2 does; `more` are members of its own, None for one that it lacks."""
    described = {
        "Name": name,
        "State": "available",
        "Architecture": "x86_64",
        "VirtualizationType": "hvm",
        "EnaSupport": True,
        "PlatformDetails": "Linux/UNIX",
        "CreationDate": "2026-11-01T00:00:00.000Z",
        "RootDeviceName": "/dev/sda1",
        "BlockDeviceMappings": [
            {"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"},
            {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": root_gib}},
        ],
    }
    return {key: value for key, value in (described | more).items() if value is not None}


def tagged(**tags: str | None) -> list[dict[str, str]]:
    """Return TAGS in EC2's form, some with another value; None removes a tag."""
    found = TAGS | {f"parallelcluster:{key}": value for key, value in tags.items()}
    return [{"Key": key, "Value": value} for key, value in found.items() if value is not None]
