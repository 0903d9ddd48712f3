"""Check of the images that ImageStack built."""

from ops.account.image_stacks import is_image_stack, usual_min
from ops.account.stacks import stack_statuses
from ops.verify.check import Check
from ops.verify.scene import Scene
from training_cluster.image.names import CONTENT_TAG, IMAGE_TAG


def _images_are_stamped(scene: Scene) -> tuple[bool, str]:
    names = [each for each in stack_statuses(scene.client("cloudformation")) if is_image_stack(each)]
    if not names:
        return True, "no ImageStack: the nodes have an official image or your own"
    faults = []
    for name in names:
        outputs = {each["OutputKey"]: each["OutputValue"] for each in scene.stack(name).get("Outputs", [])}
        images = scene.client("ec2").describe_images(ImageIds=[outputs["ImageId"]])["Images"]
        tags = {each["Key"]: each["Value"] for image in images for each in image.get("Tags", [])}
        if [image["State"] for image in images] != ["available"]:
            faults.append(f"{name}: no available AMI")
        faults += [f"{name}: no tag {key}" for key in (IMAGE_TAG, CONTENT_TAG) if key not in tags]
    usual = ", ".join(f"{name} (usually {usual_min(name)} minutes)" for name in names)
    return not faults, "; ".join(faults) or f"stamped: {usual}"


CHECKS = (
    Check(
        id="image-stamps",
        claim="Each ImageStack's AMI is available, and has the tags with its kind and its content's digest.",
        expected=f"the tags {IMAGE_TAG} and {CONTENT_TAG}",
        not_in_rehearsal="The build: no instance boots, and no component step runs.",
        look=_images_are_stamped,
    ),
)
