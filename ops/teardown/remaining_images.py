"""Reads the resources that outlive ImageStacks: AMIs, Image Builder's records, the parameter."""

from collections.abc import Iterator, Mapping
from typing import Any

from ops.account.session import ClientOf, every
from ops.parts import Parts
from ops.teardown.remaining import Ami, RemainingImages
from ops.teardown.tagged import is_of_an_image, is_ours
from training_cluster.image.names import IMAGE_TAG

PARAMETERS = "/imagebuilder/training-cluster"
"""Path of the parameters with the ids of the newest AMIs (compared in a test)."""
_GIB = 2**30


def read_images(client: ClientOf, parts: Parts) -> RemainingImages:
    """Read the resources from each service; `parts` records those without an answer."""
    builder = client("imagebuilder")
    return RemainingImages(
        amis=parts.gather("images", lambda: _amis(client("ec2"))),
        parameters=parts.gather("parameters of images", lambda: _parameters(client("ssm"))),
        builds=parts.gather("builds of images", lambda: _builds(builder)),
        recipes=parts.gather("recipes of images", lambda: _recipes(builder)),
        components=parts.gather("components of images", lambda: _components(builder)),
    )


def _amis(ec2: Any) -> Iterator[Ami]:
    filters = [{"Name": "tag-key", "Values": [IMAGE_TAG]}]
    found = every(ec2, "describe_images", "Images", Owners=["self"], Filters=filters)
    images = [each for each in found if is_of_an_image(each.get("Tags", []))]
    disks = {image["ImageId"]: list(_disks(image)) for image in images}
    stored = _stored_gib([disk["SnapshotId"] for each in disks.values() for disk in each], ec2)
    users = _users(list(disks), ec2)
    for image in images:
        mine = disks[image["ImageId"]]
        yield Ami(
            id=image["ImageId"],
            name=image.get("Name", ""),
            snapshot_ids=tuple(disk["SnapshotId"] for disk in mine),
            gib=sum(stored.get(disk["SnapshotId"], disk.get("VolumeSize", 0)) for disk in mine),
            is_whole_volume=any(disk["SnapshotId"] not in stored for disk in mine),
            users=tuple(sorted(users.get(image["ImageId"], ()))),
        )


def _disks(image: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for device in image.get("BlockDeviceMappings", []):
        if device.get("Ebs", {}).get("SnapshotId"):
            yield device["Ebs"]


def _stored_gib(snapshot_ids: list[str], ec2: Any) -> dict[str, float]:
    """Return the stored size by snapshot, without those for which the region reports none."""
    if not snapshot_ids:
        return {}
    filters = [{"Name": "snapshot-id", "Values": snapshot_ids}]
    snapshots = every(ec2, "describe_snapshots", "Snapshots", OwnerIds=["self"], Filters=filters)
    found = {each["SnapshotId"]: each.get("FullSnapshotSizeInBytes") for each in snapshots}
    return {id_: size / _GIB for id_, size in found.items() if size is not None}


def _users(image_ids: list[str], ec2: Any) -> dict[str, set[str]]:
    """Return the names of launch templates by AMI; a queue without running nodes has one, too."""
    found: dict[str, set[str]] = {}
    if not image_ids:
        return found
    versions = every(
        *(ec2, "describe_launch_template_versions", "LaunchTemplateVersions"),
        Versions=["$Latest", "$Default"],
        Filters=[{"Name": "image-id", "Values": image_ids}],
    )
    for each in versions:
        image_id = each["LaunchTemplateData"].get("ImageId")
        found.setdefault(image_id, set()).add(each["LaunchTemplateName"])
    return found


def _parameters(ssm: Any) -> Iterator[tuple[str, str]]:
    found = every(ssm, "get_parameters_by_path", "Parameters", Path=PARAMETERS, Recursive=True)
    return ((each["Name"], each["Value"]) for each in found)


def _builds(builder: Any) -> Iterator[str]:
    for version in every(builder, "list_images", "imageVersionList", owner="Self"):
        builds = every(
            builder, "list_image_build_versions", "imageSummaryList", imageVersionArn=version["arn"]
        )
        yield from (each["arn"] for each in builds if IMAGE_TAG in each.get("tags", {}))


def _recipes(builder: Any) -> Iterator[str]:
    recipes = every(builder, "list_image_recipes", "imageRecipeSummaryList", owner="Self")
    return (each["arn"] for each in recipes if _is_ours(each))


def _components(builder: Any) -> Iterator[str]:
    for version in every(builder, "list_components", "componentVersionList", owner="Self"):
        builds = every(
            builder,
            "list_component_build_versions",
            "componentSummaryList",
            componentVersionArn=version["arn"],
        )
        yield from (each["arn"] for each in builds if _is_ours(each))


def _is_ours(summary: Mapping[str, Any]) -> bool:
    return is_ours({"Key": key, "Value": value} for key, value in summary.get("tags", {}).items())
