"""What the flags ask of an image, and what an official one of that kind is called."""

from __future__ import annotations

import re
from dataclasses import dataclass

OFFICIAL = "official"

# Between version and architecture in the names of official images (ParallelCluster's library, constants.py).
OS_PARTS = {
    "alinux2023": "amzn2023-hvm",
    "ubuntu2204": "ubuntu-2204-lts-hvm",
    "ubuntu2404": "ubuntu-2404-lts-hvm",
}
_OFFICIAL_NAME = re.compile(r"aws-parallelcluster-(?P<version>\d+\.\d+\.\d+)-(?P<part>.+-hvm)-")


class RefusedError(Exception):
    """The flags ask for what cannot be; its text is for people."""


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What the flags say of the image."""

    wanted: str
    """official, or ami-..."""
    version: str
    """Of ParallelCluster."""
    os: str
    architecture: str
    root_gib: int
    """Root volume that instances of the image get."""

    @property
    def official_name(self) -> str:
        """How names of official images of this kind begin."""
        return f"aws-parallelcluster-{self.version}-{OS_PARTS[self.os]}-{self.architecture}"


def read_official_name(name: str) -> tuple[str, str]:
    """Version and operating system in the name of an official image or of a copy; both empty in others."""
    found = _OFFICIAL_NAME.match(name)
    systems = {part: system for system, part in OS_PARTS.items()}
    return (found["version"], systems.get(found["part"], found["part"])) if found else ("", "")
