"""Checks of the nodes' image: the official one, a custom one, or one that a deploy builds."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from ops.account.session import ClientOf, read_parameter
from ops.asset_code import asset_code
from ops.preflight.existing_network import ExistingNetwork
from ops.preflight.finding import Finding
from training_cluster.cluster.nodes import own_images, root_volumes
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_parameter, image_stack_name
from training_cluster.image.plan import image_plan
from training_cluster.pcluster.check import BUILT_IMAGE, config_before_deploy
from training_cluster.queues.queue import OFFICIAL


def check_image(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> Iterator[Finding]:
    """Check the images that a deploy would use."""
    config = config_before_deploy(settings)
    roots = root_volumes(config)
    if OFFICIAL in roots and (settings.node_image != "build" or _was_built(existing)):
        yield _look(
            "official image",
            _deploy_code().request.OFFICIAL,
            roots[OFFICIAL],
            settings=settings,
            ec2=client("ec2"),
            mend="-c os=..., or another region: export AWS_REGION=...",
        )
    if settings.node_image == "build":
        yield from _built(settings, existing, roots[BUILT_IMAGE], client)
    for image, root_gib in own_images(config, built=BUILT_IMAGE).items():
        yield _look(
            f"image {image}",
            image,
            root_gib,
            settings=settings,
            ec2=client("ec2"),
            mend="aws ec2 describe-images --owners self, then -c image=ami-...",
        )


def _built(
    settings: Settings, existing: ExistingNetwork, root_gib: int, client: ClientOf
) -> Iterator[Finding]:
    name, plan, ec2 = image_stack_name(settings), image_plan(settings), client("ec2")
    again = existing.image_stack.outputs.get("BuildAgain", "") if existing.image_stack else ""
    if not _was_built(existing):  # no deploy of it succeeded: the next one finds the parent image, and builds
        yield _look(
            f"{name}: made from",
            _deploy_code().request.OFFICIAL,
            plan.recipe.root_gib,
            settings=settings,
            ec2=ec2,
            mend="-c os=..., or -c image=ami-...",
        )
        usd = plan.usd(plan.recipe.usual_min)
        takes = f"about {plan.recipe.usual_min} minutes" + ("" if usd is None else f" and {usd:.2f} USD")
        yield Finding(check=name, found=f"missing: the first deploy builds an image, {takes}, as estimated")
        return
    parameter = image_parameter(settings)
    image_id = read_parameter(parameter, client("ssm"))
    if image_id is None:
        found = f"exists, but without the parameter {parameter}: the deploy would stop before the cluster"
        yield Finding(check=name, found=found, verdict="problem", mend=again)
        return
    yield _look(
        f"{name}: newest image",
        image_id,
        root_gib,
        settings=settings,
        ec2=ec2,
        mend=again,
    )


def _deploy_code() -> SimpleNamespace:
    return asset_code("cluster_image", "request", "region", "custom_ami", "official")


def _was_built(existing: ExistingNetwork) -> bool:
    return existing.image_stack is not None and "BuildAgain" in existing.image_stack.outputs


def _look(check: str, wanted: str, root_gib: int, *, settings: Settings, ec2: Any, mend: str) -> Finding:
    """Check an image with the deploy's own code, assets/cluster_image."""
    code = _deploy_code()
    request = code.request.ImageRequest(
        wanted=wanted,
        version=PCLUSTER_VERSION,
        os_name=settings.os_name,
        architecture=settings.family_facts.architecture,
        root_gib=root_gib,
    )
    find = code.official.choose if wanted == code.request.OFFICIAL else code.custom_ami.check
    try:
        image, note = find(request, code.region.Region(ec2))
    except code.request.RefusedError as error:
        return Finding(check=check, found=str(error), verdict="problem", mend=mend)
    if note:
        return Finding(check=check, found=note, verdict="warning", mend=mend)
    made = str(image.described["CreationDate"])[:10]
    return Finding(check=check, found=f"{image}, of {made}, {image.root_gib} GiB")
