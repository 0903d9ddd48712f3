"""Fakes of EC2 and CloudFormation for the image's custom resource: a region's images in memory."""

# ruff: noqa: N803 - boto3's own argument names
import fnmatch
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.unit.assets import function_fakes
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


@dataclass
class FakeRegion(function_fakes.FakeRegion):
    """us-east-1 with one official image of ubuntu2404, one of alinux2023, and one of our own."""

    stack_id: str = STACK
    images: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {
            OLD: official(),
            "ami-0cccccccccccccccc": official(os_part="amzn2023-hvm"),
            OWN: image(Tags=tagged()),
        }
    )

    def ec2(self) -> types.SimpleNamespace:
        """Return the fake calls of EC2."""
        return types.SimpleNamespace(
            meta=types.SimpleNamespace(region_name="us-east-1"),
            describe_images=self._describe_images,
            get_paginator=lambda name: types.SimpleNamespace(paginate=getattr(self, f"_{name}_by_page")),
        )

    def _listed(self) -> list[dict[str, Any]]:
        return [{"ImageId": id_, **described} for id_, described in self.images.items()]

    def _describe_images(self, *, ImageIds: list[str], IncludeDeprecated: bool) -> dict[str, Any]:
        self.answers("DescribeImages")
        assert IncludeDeprecated
        found = [each for each in self._listed() if each["ImageId"] in ImageIds]
        if not found:
            message = f"The image id '{ImageIds}' does not exist"
            raise function_fakes.refused("DescribeImages", "InvalidAMIID.NotFound", message)
        return {"Images": [each for each in found if each["State"] != "disabled"]}

    def _describe_images_by_page(
        self, *, Owners: list[str], Filters: list[dict[str, Any]], IncludeDeprecated: bool
    ) -> Iterator[dict[str, Any]]:
        """Return one image per page."""
        self.answers("DescribeImages")
        assert IncludeDeprecated
        assert Owners == ["amazon"]
        wanted = {each["Name"]: each["Values"] for each in Filters}
        assert wanted["state"] == ["available"]
        (pattern,) = wanted["name"]
        for each in self._listed():
            owned = each.get("ImageOwnerAlias") == "amazon" and each["State"] == "available"
            yield {"Images": [each] if owned and fnmatch.fnmatch(each["Name"], pattern) else []}
