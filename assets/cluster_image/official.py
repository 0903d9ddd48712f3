"""The choice of the official image that is the parent of the images that a deploy builds."""

from __future__ import annotations

from collections.abc import Sequence

from region import Image, Region
from request import OS_PARTS, ImageRequest, RefusedError


def choose(request: ImageRequest, region: Region, known: Sequence[str] = ()) -> tuple[Image, str]:
    """Return the image in use if it still fits, else the newest one, and a note for people.

    The parent of an Image Builder recipe cannot change, so a newer image would require a new recipe. The
    parent changes only with the version of ParallelCluster.

    Args:
        known: ids of the image in use and of the one before it, which a rollback restores.

    Raises:
        RefusedError: no image fits, or its root volume is larger than the requested one.
    """
    images = region.official_images(request.official_name)
    if not images:
        raise RefusedError(_no_image(request, region))
    newest = images[-1]
    by_id = {image.id: image for image in images}
    image = next((by_id[id_] for id_ in known if id_ in by_id), newest)
    if (root_gib := image.root_gib) is None or root_gib > request.root_gib:
        size = "none on EBS" if root_gib is None else f"{root_gib} GiB"
        raise RefusedError(
            f"The official image {image} has a root volume of {size}, and {request.root_gib} GiB are "
            "requested: give the root volume at least the size of the image's."
        )
    if image == newest:
        return image, ""
    return image, f"{image} is kept, although {newest} is newer: a recipe's parent cannot change"


def _no_image(request: ImageRequest, region: Region) -> str:
    others = [
        os_name
        for os_name, part in OS_PARTS.items()
        if region.official_images(f"aws-parallelcluster-{request.version}-{part}-{request.architecture}")
    ]
    mend = (
        f"Type another os ({', '.join(others)})"
        if others
        else "Deploy in a region that ParallelCluster supports"
    )
    return (
        f"{region.name} has no official image of ParallelCluster {request.version} for {request.os_name}, "
        f"{request.architecture} ({request.official_name}*). {mend}, or use your own image: "
        "-c image=ami-..."
    )
