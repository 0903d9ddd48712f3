"""Checks of the user's own image before the cluster changes; a refusal says how to fix it."""

from __future__ import annotations

from collections.abc import Iterator

from region import Image, Region
from request import ImageRequest, RefusedError, read_official_name

_VERSION, _OS, _STATUS = (f"parallelcluster:{each}" for each in ("version", "os", "build_status"))
# PlatformDetails of Ubuntu and Amazon Linux; others cost a licence (EC2 guide, "AMI billing information").
_LINUX = ("Linux/UNIX", "Ubuntu Pro")


def check(request: ImageRequest, region: Region) -> tuple[Image, str]:
    """Check the image; return it, and a note on the properties that could not be checked.

    Raises:
        RefusedError: the image does not exist, or nodes could not start from it.
    """
    image = region.image(request.wanted)
    if image is None:
        raise RefusedError(
            f"image={request.wanted}: {region.name} has no such image for this account. AMI ids are "
            f"regional: type the id that it has there, or copy it: aws ec2 copy-image --region {region.name} "
            f"--source-region ... --source-image-id {request.wanted} --copy-image-tags --name ..."
        )
    problems = [*_mismatches(image, request), *_boot_problems(image, request)]
    if problems:
        raise RefusedError(f"image={image} cannot be used: {'; '.join(problems)}.")
    return image, " ".join(_untagged(image))


def _mismatches(image: Image, request: ImageRequest) -> Iterator[str]:
    """Yield the problems of an image for another ParallelCluster, or another operating system."""
    named_version, named_os = read_official_name(image.name)
    tags = image.tags
    version, os = tags.get(_VERSION) or named_version, tags.get(_OS) or named_os
    if version and version != request.version:
        yield (
            f"it is for ParallelCluster {version} (by its {_source(_VERSION, tags)}), and this app uses "
            f"{request.version}: build it again from the official image of {request.version}"
        )
    if _VERSION in tags and _STATUS not in tags:
        # Its CustomAmiTagValidator only warns about an image without both tags.
        yield (
            f"ParallelCluster refuses the tag {_VERSION} without {_STATUS}: aws ec2 create-tags "
            f"--resources {image.id} --tags Key={_STATUS},Value=available"
        )
    if os and os != request.os_name:
        source = _source(_OS, tags)
        yield f"it has {os} (by its {source}), and the cluster's os is {request.os_name}: use another image"
    platform = image.described.get("PlatformDetails") or image.described.get("Platform") or _LINUX[0]
    if platform not in _LINUX:
        yield f"its platform is {platform}, which {request.os_name} is not: use another image"


def _boot_problems(image: Image, request: ImageRequest) -> Iterator[str]:
    described = image.described
    if described["State"] != "available":
        yield f"its state is {described['State']}: deploy again when it is available"
    if described.get("Architecture") != request.architecture:
        found = described.get("Architecture")
        yield f"it is for {found}, and the nodes are {request.architecture}: use another image"
    if described.get("VirtualizationType") != "hvm":
        found = described.get("VirtualizationType")
        yield f"its virtualization is {found}: the nodes' instance types require hvm"
    if not described.get("EnaSupport"):
        yield "it is registered without ENA, which the nodes require: register it --ena-support"
    if image.root_gib is None:
        yield "its root volume is not on EBS: register it from a snapshot"
    elif image.root_gib > request.root_gib:
        yield (
            f"its root volume has {image.root_gib} GiB, and the queue's {request.root_gib}: build it with "
            f"{request.root_gib} GiB at most"
        )


def _untagged(image: Image) -> Iterator[str]:
    """Yield a note on missing tags, about which the library only warns: copied images have none."""
    named = dict(zip((_VERSION, _OS), read_official_name(image.name), strict=True))
    unknown = [tag for tag in named if not (image.tags.get(tag) or named[tag])]
    if unknown:
        yield (
            f"{image} has no tag {' and no tag '.join(unknown)}: if it was not made from an official image "
            "of this version and operating system, its nodes do not join the cluster."
        )


def _source(tag: str, tags: dict[str, str]) -> str:
    return f"tag {tag}" if tag in tags else "name"
