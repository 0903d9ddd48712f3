"""AWS's answers about a region's images, and about the resource's own stack."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

# A region's quota of Describe calls is shared by everybody in the account.
_RETRIES = Config(retries={"mode": "standard", "max_attempts": 10})
_UNKNOWN_IMAGE = "InvalidAMIID."
"""Prefix of the codes NotFound, Malformed and Unavailable (deregistered)."""


@dataclass(frozen=True)
class Image:
    """One AMI, as DescribeImages returns it."""

    described: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.id} ({self.name})"

    @property
    def id(self) -> str:
        """The image's id, ami-...."""
        return str(self.described["ImageId"])

    @property
    def name(self) -> str:
        """The image's name; empty for one whose owner does not show it."""
        return str(self.described.get("Name") or "")

    @property
    def tags(self) -> dict[str, str]:
        """The image's tags; EC2 does not show the tags of other accounts' images."""
        return {tag["Key"]: tag["Value"] for tag in self.described.get("Tags") or []}

    @property
    def root_gib(self) -> int | None:
        """Size of the root volume; None if it is not on EBS."""
        for device in self.described.get("BlockDeviceMappings") or []:
            if device.get("DeviceName") == self.described.get("RootDeviceName") and "Ebs" in device:
                return int(device["Ebs"]["VolumeSize"])
        return None

    @property
    def age_order(self) -> tuple[bool, str]:
        """Sort key of ParallelCluster's library: deprecated images first, the newest last."""
        deprecated = self.described.get("DeprecationTime") or "9999"
        now = datetime.datetime.now(datetime.UTC).isoformat()
        return deprecated > now, str(self.described["CreationDate"])


class Region:
    """The region that the function runs in, or a client's."""

    def __init__(self, ec2: Any = None) -> None:
        self._ec2 = ec2 or boto3.client("ec2", config=_RETRIES)
        self.name: str = self._ec2.meta.region_name

    def official_images(self, name: str) -> list[Image]:
        """List AWS's own available images whose names begin with `name`, the newest last."""
        pages = self._ec2.get_paginator("describe_images").paginate(
            Owners=["amazon"],
            Filters=[{"Name": "name", "Values": [f"{name}*"]}, {"Name": "state", "Values": ["available"]}],
            IncludeDeprecated=True,
        )
        return sorted(_images(pages), key=lambda image: image.age_order)

    def image(self, id_: str) -> Image | None:
        """Find an image by its id; None if this account has no such image in the region."""
        try:
            return next(_images([self._ec2.describe_images(ImageIds=[id_], IncludeDeprecated=True)]), None)
        except ClientError as error:
            if error.response["Error"]["Code"].startswith(_UNKNOWN_IMAGE):
                return None
            raise


def _images(pages: Any) -> Iterator[Image]:
    return (Image(each) for page in pages for each in page["Images"])


def rolls_back(stack_id: str) -> bool:
    """Return True if the stack rolls back; False at UPDATE_ROLLBACK_COMPLETE, from which an update begins."""
    cloudformation = boto3.client("cloudformation", config=_RETRIES)
    stack = cloudformation.describe_stacks(StackName=stack_id)["Stacks"][0]
    return str(stack["StackStatus"]) == "UPDATE_ROLLBACK_IN_PROGRESS"
