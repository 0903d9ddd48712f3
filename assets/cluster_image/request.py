"""The image that the flags request, and the names of official images."""

from __future__ import annotations

import re
from dataclasses import dataclass

OFFICIAL = "official"

# Part between version and architecture in official images' names (ParallelCluster's library, constants.py).
OS_PARTS = {
    "alinux2023": "amzn2023-hvm",
    "ubuntu2204": "ubuntu-2204-lts-hvm",
    "ubuntu2404": "ubuntu-2404-lts-hvm",
}
_OFFICIAL_NAME = re.compile(r"aws-parallelcluster-(?P<version>\d+\.\d+\.\d+)-(?P<part>.+-hvm)-")


class RefusedError(Exception):
    """The flags ask for an impossible image; the text is for people."""


@dataclass(frozen=True, kw_only=True)
class ImageRequest:
    """The flags that decide about the image."""

    wanted: str
    """`official`, or an AMI's id (ami-...)."""
    version: str
    """ParallelCluster's version."""
    os_name: str
    architecture: str
    root_gib: int
    """Size of the root volume that the image's instances get."""

    @property
    def official_name(self) -> str:
        """Prefix of the names of official images that fit."""
        return f"aws-parallelcluster-{self.version}-{OS_PARTS[self.os_name]}-{self.architecture}"


def read_official_name(name: str) -> tuple[str, str]:
    """Return version and operating system in the name of an official image or its copy; else empty ones."""
    found = _OFFICIAL_NAME.match(name)
    os_names = {part: os_name for os_name, part in OS_PARTS.items()}
    return (found["version"], os_names.get(found["part"], found["part"])) if found else ("", "")
