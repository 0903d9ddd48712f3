"""The images that no ImageStack deletes, and what Image Builder keeps: reading, cost and deletion."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ops.account.image_stacks import destroy_image_stack_command, is_image_stack
from ops.account.session import ClientOf, every
from ops.parts import Parts
from ops.teardown.step import Step
from ops.teardown.tagged import is_of_an_image, is_ours
from training_cluster.catalog.charges import Charge
from training_cluster.catalog.prices import Prices
from training_cluster.image.names import IMAGE_TAG

PARAMETERS = "/imagebuilder/training-cluster"
"""Path of the parameters with the ids of the newest AMIs (compared in a test)."""
_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class Ami:
    """An image of nodes."""

    id: str
    name: str
    snapshot_ids: tuple[str, ...]
    gib: float
    """Size of the snapshots; size of their volumes if EC2 does not report it."""
    is_whole_volume: bool
    """True if `gib` is the size of the volumes, of which only written blocks are stored."""
    users: tuple[str, ...]
    """Launch templates with this AMI; each queue of a cluster has one."""


@dataclass(frozen=True, kw_only=True)
class RemainingImages:
    """Resources that no ImageStack deletes."""

    amis: tuple[Ami, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    """Name of each parameter, and the AMI that it names."""
    builds: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    """ARNs of Image Builder's components."""

    @property
    def used(self) -> set[str]:
        """Ids of the AMIs with launch templates."""
        return {ami.id for ami in self.amis if ami.users}


def read_images(client: ClientOf, parts: Parts) -> RemainingImages:
    """Read the resources from each service; `parts` records those without an answer."""
    builder = client("imagebuilder")
    amis = parts.gather("images", lambda: _amis(client("ec2")))
    parameters = parts.gather("parameters of images", lambda: _parameters(client("ssm")))
    builds = parts.gather("builds of images", lambda: _builds("image", builder))
    listed = (builder, "list_image_recipes", "imageRecipeSummaryList")
    recipes = parts.gather("recipes of images", lambda: every(*listed, owner="Self"))
    components = parts.gather("components of images", lambda: _builds("component", builder))
    return RemainingImages(
        amis=amis,
        parameters=parameters,
        builds=tuple(each["arn"] for each in builds if IMAGE_TAG in each.get("tags", {})),
        recipes=tuple(each["arn"] for each in recipes if _is_ours(each)),
        components=tuple(each["arn"] for each in components if _is_ours(each)),
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


def _builds(kind: str, builder: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the builds of each version of an image or a component."""
    for version in every(builder, f"list_{kind}s", f"{kind}VersionList", owner="Self"):
        asked = {f"{kind}VersionArn": version["arn"]}
        yield from every(builder, f"list_{kind}_build_versions", f"{kind}SummaryList", **asked)


def _is_ours(summary: Mapping[str, Any]) -> bool:
    return is_ours({"Key": key, "Value": value} for key, value in summary.get("tags", {}).items())


def image_charge(ami: Ami, prices: Prices) -> Charge:
    """Return the cost of an image."""
    notes = (
        "at most: what was never written is not stored" if ami.is_whole_volume else "",
        f"in use: {', '.join(ami.users)}" if ami.users else "",
    )
    return Charge(
        what=f"{ami.id}  image {ami.name}, snapshots of {ami.gib:,.0f} GiB",
        usd_per_month=ami.gib * prices.snapshot_gb_month.usd,
        prices=(prices.snapshot_gb_month,),
        note="; ".join(filter(None, notes)),
    )


def image_stack_steps(stacks: Iterable[str]) -> Iterator[Step]:
    """Yield the steps for ImageStacks, which use the network and have to be deleted before it."""
    for name in filter(is_image_stack, stacks):
        yield Step(
            title=f"{name}: ends its pipeline, and deletes no image. Without --exclusively the CDK would "
            "destroy the cluster with it",
            commands=(destroy_image_stack_command(name),),
        )


def image_steps(remaining: RemainingImages) -> Iterator[Step]:
    """Yield the steps for resources that outlive ImageStacks, except AMIs of launch templates."""
    for ami in remaining.amis:
        if not ami.users:
            yield Step(
                title=f"{ami.id}, the image {ami.name}, and its snapshot", commands=_delete_commands(ami)
            )
    yield Step(
        title="The parameter with the id of the newest image",
        commands=tuple(
            f"aws ssm delete-parameter --name {name}"
            for name, image_id in remaining.parameters
            if image_id not in remaining.used
        ),
    )
    yield Step(
        title="Image Builder's records of builds, recipes and components, which cost nothing",
        commands=(
            *(f"aws imagebuilder delete-image --image-build-version-arn {arn}" for arn in remaining.builds),
            *(f"aws imagebuilder delete-image-recipe --image-recipe-arn {arn}" for arn in remaining.recipes),
            *(
                f"aws imagebuilder delete-component --component-build-version-arn {arn}"
                for arn in remaining.components
            ),
        ),
    )


def _delete_commands(ami: Ami) -> tuple[str, ...]:
    snapshots = (f"aws ec2 delete-snapshot --snapshot-id {id_}" for id_ in ami.snapshot_ids)
    return (f"aws ec2 deregister-image --image-id {ami.id}", *snapshots)


def images_that_wait(remaining: RemainingImages, cluster_name: str) -> Iterator[str]:
    """Yield the lines for a terminal; none if no AMI is in use."""
    plan = f"trainctl destroy --plan --cluster {cluster_name}"
    for ami in remaining.amis:
        if ami.users:
            yield ""
            yield f"{ami.id} is in no command above: new nodes start from it, by the launch template(s)"
            yield f"{', '.join(ami.users)}. Once they are gone, again: {plan}"
