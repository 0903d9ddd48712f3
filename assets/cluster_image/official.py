"""Which official image is the parent of images that we build."""

from __future__ import annotations

from collections.abc import Sequence

from region import Image, Region
from wish import OS_PARTS, RefusedError, Wish


def choose(wish: Wish, region: Region, known: Sequence[str] = ()) -> tuple[Image, str]:
    """The one that is in use if it still fits, else the newest; and what a person should know of it.

    A recipe of Image Builder never changes its parent, so another parent wants another recipe: it comes with
    another version of ParallelCluster, not with an update of the stack that happens to find a newer image.

    Args:
        known: ids of the image in use and of the one before it, which a rollback goes back to.

    Raises:
        RefusedError: there is none, or its root volume is larger than the one that is asked for.
    """
    images = region.official_images(wish.official_name)
    if not images:
        raise RefusedError(_none(wish, region))
    newest = images[-1]
    by_id = {image.id: image for image in images}
    image = next((by_id[id_] for id_ in known if id_ in by_id), newest)
    if (root_gib := image.root_gib) is None or root_gib > wish.root_gib:
        size = "none on EBS" if root_gib is None else f"{root_gib} GiB"
        raise RefusedError(
            f"The official image {image} has a root volume of {size}, and {wish.root_gib} GiB are asked for: "
            f"give the root volume at least as much."
        )
    if image == newest:
        return image, ""
    return image, f"{image} is kept, though {newest} is newer: a recipe's parent never changes"


def _none(wish: Wish, region: Region) -> str:
    others = [
        system
        for system, part in OS_PARTS.items()
        if region.official_images(f"aws-parallelcluster-{wish.version}-{part}-{wish.architecture}")
    ]
    mend = (
        f"Type another os ({', '.join(others)})"
        if others
        else "Deploy in a region that ParallelCluster supports"
    )
    return (
        f"{region.name} has no official image of ParallelCluster {wish.version} for {wish.os}, "
        f"{wish.architecture} ({wish.official_name}*). {mend}, or bring an image of yours: -c image=ami-..."
    )
