"""Whether an image of one's own can be the nodes': before the cluster changes, in words with a mend."""

from __future__ import annotations

from collections.abc import Iterator

from region import Image, Region
from wish import RefusedError, Wish, read_official_name

_VERSION, _OS, _STATUS = (f"parallelcluster:{each}" for each in ("version", "os", "build_status"))
# PlatformDetails of Ubuntu and Amazon Linux; others pay for a licence (EC2 guide, "AMI billing information").
_LINUX = ("Linux/UNIX", "Ubuntu Pro")


def check(wish: Wish, region: Region) -> tuple[Image, str]:
    """Look at the image; it, and what could not be checked.

    Raises:
        RefusedError: it is not there, or nodes could not start from it.
    """
    image = region.image(wish.wanted)
    if image is None:
        raise RefusedError(
            f"image={wish.wanted}: {region.name} has none such for this account. AMI ids are regional: type "
            f"the id that it has here, or copy it: aws ec2 copy-image --region {region.name} "
            f"--source-region ... --source-image-id {wish.wanted} --copy-image-tags --name ..."
        )
    problems = [*_foreign(image, wish), *_unbootable(image, wish)]
    if problems:
        raise RefusedError(f"image={image} cannot be used: {'; '.join(problems)}.")
    return image, " ".join(_unknown(image))


def _foreign(image: Image, wish: Wish) -> Iterator[str]:
    """What is of another ParallelCluster, or another system."""
    named_version, named_os = read_official_name(image.name)
    tags = image.tags
    version, os = tags.get(_VERSION) or named_version, tags.get(_OS) or named_os
    if version and version != wish.version:
        yield (
            f"it is of ParallelCluster {version} (by its {_by(_VERSION, tags)}), and this app's is "
            f"{wish.version}: build it again from the official image of {wish.version}"
        )
    if _VERSION in tags and _STATUS not in tags:
        # Without both of them it passes with a warning (its CustomAmiTagValidator).
        yield (
            f"ParallelCluster refuses the tag {_VERSION} without {_STATUS}: aws ec2 create-tags "
            f"--resources {image.id} --tags Key={_STATUS},Value=available"
        )
    if os and os != wish.os:
        yield f"it is of {os} (by its {_by(_OS, tags)}), and the cluster's os is {wish.os}: type another one"
    platform = image.described.get("PlatformDetails") or image.described.get("Platform") or _LINUX[0]
    if platform not in _LINUX:
        yield f"its platform is {platform}, and {wish.os} is not: type another one"


def _unbootable(image: Image, wish: Wish) -> Iterator[str]:
    said = image.described
    if said["State"] != "available":
        yield f"its state is {said['State']}: deploy again when it is available"
    if said.get("Architecture") != wish.architecture:
        yield f"it is for {said.get('Architecture')}, and the nodes are {wish.architecture}: type another one"
    if said.get("VirtualizationType") != "hvm":
        yield f"its virtualization is {said.get('VirtualizationType')}: the nodes' instance types want hvm"
    if not said.get("EnaSupport"):
        yield "it is registered without ENA, which the nodes' instance types want: register it --ena-support"
    if image.root_gib is None:
        yield "its root volume is not on EBS: register it from a snapshot"
    elif image.root_gib > wish.root_gib:
        yield (
            f"its root volume has {image.root_gib} GiB, and the queue's {wish.root_gib}: build it with "
            f"{wish.root_gib} GiB at most"
        )


def _unknown(image: Image) -> Iterator[str]:
    """What the library lets pass with a warning: a shared or copied image has lost its tags."""
    named = dict(zip((_VERSION, _OS), read_official_name(image.name), strict=True))
    unknown = [tag for tag in named if not (image.tags.get(tag) or named[tag])]
    if unknown:
        yield (
            f"{image} has no tag {' and no tag '.join(unknown)}: if it was not made from an official image "
            "of this version and system, its nodes do not join the cluster."
        )


def _by(tag: str, tags: dict[str, str]) -> str:
    return f"tag {tag}" if tag in tags else "name"
