"""Custom AMIs and their volumes: what moto drops of RegisterImage, and EC2's default key for volumes."""

from typing import Any

from rehearsal.local_aws.emulators import hooks, moto_actions
from rehearsal.local_aws.emulators.moto_actions import parameter
from rehearsal.local_aws.emulators.moto_services import ROOT_VOLUME_GIB
from rehearsal.local_aws.emulators.moto_types import ec2

_AWS_KEY = "alias/aws/ebs"


def install() -> None:
    """Correct moto's images, and add the action that returns the default key."""
    from moto.ec2.models.amis import Ami  # noqa: PLC0415

    hooks.replace("IMAGE_BLOCK_DEVICES", _with_real_size)
    # Default for AWS's own images; RegisterImage sets it for others.
    Ami.ena_support = True  # type: ignore[attr-defined]
    moto_actions.add("ec2", register_image, get_ebs_default_kms_key_id)


def _with_real_size(original: property) -> property:
    def block_device_mappings(self: Any) -> list[dict[str, Any]]:
        assert original.fget is not None
        [root] = original.fget(self)
        size = getattr(self, "root_gib", ROOT_VOLUME_GIB)
        return [{**root, "Ebs": {**root["Ebs"], "VolumeSize": size, "VolumeType": "gp3"}}]

    return property(block_device_mappings)


def register_image(self: Any) -> Any:
    """Answer RegisterImage; architecture, root device, its size, and tags are stored."""
    self.error_on_dryrun()
    image = ec2().register_image(parameter(self, "Name"), parameter(self, "Description", ""))
    image.architecture = parameter(self, "Architecture", "i386")
    image.virtualization_type = parameter(self, "VirtualizationType", "paravirtual")
    image.root_device_name = parameter(self, "RootDeviceName", "/dev/sda1")
    image.root_device_type = "ebs"
    image.hypervisor = "xen"
    image.ena_support = str(parameter(self, "EnaSupport", "false")).lower() == "true"
    for device in parameter(self, "BlockDeviceMappings", []):
        if device.get("DeviceName") == image.root_device_name:
            image.root_gib = int(device.get("Ebs", {}).get("VolumeSize", ROOT_VOLUME_GIB))
    image.add_tags(moto_actions.given_tags(self))
    return moto_actions.answer(ImageId=image.id)


def copy_image(parent: Any, *, name: str, description: str, root_gib: int, tags: dict[str, str]) -> Any:
    """Create moto's record of a new image of this account, with the other properties of its parent."""
    image = ec2().register_image(name, description)
    for attribute in (
        "architecture",
        "virtualization_type",
        "root_device_name",
        "root_device_type",
        "hypervisor",
        "platform",
        "ena_support",
    ):
        setattr(image, attribute, getattr(parent, attribute))
    image.root_gib = root_gib
    image.add_tags(tags)
    return image


def get_ebs_default_kms_key_id(self: Any) -> Any:  # noqa: ARG001
    """Answer GetEbsDefaultKmsKeyId with the alias of AWS's own key until another key is chosen."""
    return moto_actions.answer(KmsKeyId=ec2().default_kms_key_id or _AWS_KEY)
