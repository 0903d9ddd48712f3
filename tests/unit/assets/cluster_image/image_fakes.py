"""Images in the local AWS: the official ones, and one's own."""

from typing import Any

from rehearsal.local_aws.publications import official_images
from training_cluster.flags.cluster import PCLUSTER_VERSION

VERSION = PCLUSTER_VERSION.replace(".", "-")
"""ParallelCluster's version, as the names of ImageStacks and images end."""
OFFICIAL = {str(e["name"]).rpartition("-")[0]: str(e["ami_id"]) for e in official_images(PCLUSTER_VERSION)}
PREFIX = f"aws-parallelcluster-{PCLUSTER_VERSION}"
NAME = f"{PREFIX}-ubuntu-2404-lts-hvm-x86_64"
OLD, GONE = OFFICIAL[NAME], "ami-0aaaaaaaaaaaaaaaa"
TAGS = {"version": PCLUSTER_VERSION, "os": "ubuntu2404", "build_status": "available"}


def tagged(**tags: str | None) -> list[dict[str, str]]:
    """Return TAGS in EC2's form, some with another value; None removes a tag."""
    found = {f"parallelcluster:{key}": value for key, value in (TAGS | tags).items()}
    return [{"Key": key, "Value": value} for key, value in found.items() if value is not None]


def register(ec2: Any, name: str = "training") -> str:
    """Make an image with the tags of a build; return its id."""
    root = {"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 35}}
    made = ec2.register_image(
        Name=name,
        RootDeviceName="/dev/sda1",
        BlockDeviceMappings=[{"DeviceName": "/dev/sdb", "VirtualName": "ephemeral0"}, root],
        Architecture="x86_64",
        VirtualizationType="hvm",
        EnaSupport=True,
    )
    ec2.create_tags(Resources=[made["ImageId"]], Tags=tagged())
    return str(made["ImageId"])
