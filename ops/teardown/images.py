"""Lists the commands that delete images, and the images that are still in use. Pure."""

from collections.abc import Iterator

from ops.account.image_stacks import destroy_image_stack_command, is_image_stack
from ops.account.stacks import Stack
from ops.teardown.remaining import Ami, RemainingImages
from ops.teardown.step import Step


def image_stack_steps(stacks: dict[str, Stack]) -> Iterator[Step]:
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
