"""Builds of images: each makes an AMI like its parent, and puts its id in the distribution's SSM parameters.

No instance starts and no component runs. Errors before or after these steps fail the build, as on AWS.
"""

import datetime
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.local_aws.address import REGION
from rehearsal.local_aws.ec2.images import copy_image
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Properties, ec2
from rehearsal.local_aws.image_builder.records import Record, RefusedError, add, find, next_number

# Prefixes to which Image Builder's own role may write (its policy AWSServiceRoleForImageBuilder).
_OWN_PARAMETERS, _OWN_LOGS = "/imagebuilder/", "/aws/imagebuilder/"


def named(wanted: Properties) -> tuple[Record, Record]:
    """Return the recipe and the distribution of an AWS::ImageBuilder::Image or ::ImagePipeline.

    Raises:
        RefusedError: a resource that it names does not exist.
    """
    find(wanted["InfrastructureConfigurationArn"], "infrastructure-configuration")
    distribution = find(wanted["DistributionConfigurationArn"], "distribution-configuration")
    return find(wanted["ImageRecipeArn"], "image-recipe"), distribution


def build(wanted: Properties, tags: dict[str, str] | None) -> Record:
    """Build an image; its details contain the state, available or failed.

    Args:
        wanted: properties of the AWS::ImageBuilder::Image or ::ImagePipeline.
        tags: tags of the image.

    Raises:
        RefusedError: a resource that it names does not exist.
    """
    recipe, distribution = named(wanted)
    version = ".".join(str(part) for part in recipe.numbers)
    number = next_number("image", recipe.name, version)
    image = add("image", {"Name": recipe.name, "Tags": tags or {}}, version, str(number))
    image.details = {"recipe": recipe.arn, "state": {"status": "AVAILABLE"}}
    try:
        image.details["ami"] = _make_ami(image, recipe.properties, distribution.properties, wanted)
    except RefusedError as error:
        image.details["state"] = {"status": "FAILED", "reason": str(error)}
    return image


def _make_ami(image: Record, recipe: Properties, distribution: Properties, wanted: Properties) -> str:
    parent = known_ami(recipe["ParentImage"])
    [here] = [each for each in distribution["Distributions"] if each["Region"] == REGION]
    parameters = here.get("SsmParameterConfigurations") or []
    logs = wanted.get("LoggingConfiguration") or {}
    _refuse_what_is_not_image_builders_own(
        parameters, logs.get("LogGroupName") or logs.get("ImageLogGroupName")
    )
    of_ami = here["AmiDistributionConfiguration"]
    ami = copy_image(
        parent,
        name=_ami_name(of_ami["Name"]),
        description=of_ami.get("Description") or "",
        root_gib=_root_gib(recipe, parent),
        tags={
            **(of_ami.get("AmiTags") or {}),
            "CreatedBy": "EC2 Image Builder",
            "Ec2ImageBuilderArn": image.arn,
        },
    )
    for each in parameters:
        _publish(each, ami.id)
    return str(ami.id)


def _refuse_what_is_not_image_builders_own(parameters: list[Properties], log_group: str | None) -> None:
    for each in parameters:
        if not each["ParameterName"].startswith(_OWN_PARAMETERS):
            raise RefusedError(
                "AWSServiceRoleForImageBuilder is not authorized to perform: ssm:PutParameter on "
                f"{each['ParameterName']}"
            )
    if log_group and not log_group.startswith(_OWN_LOGS):
        raise RefusedError(
            f"AWSServiceRoleForImageBuilder is not authorized to perform: logs:PutLogEvents on {log_group}"
        )


def known_ami(id_: str) -> Any:
    """Return moto's record of an image. Raises RefusedError if there is none."""
    image = ec2().amis.get(id_)
    if image is None:
        raise RefusedError(
            f"The value supplied for parameter 'parentImage' is not valid. The image {id_} does not exist."
        )
    return image


def _root_gib(recipe: Properties, parent: Any) -> int:
    [root] = parent.block_device_mappings
    least = size = int(root["Ebs"]["VolumeSize"])
    for device in recipe.get("BlockDeviceMappings") or []:
        if device.get("DeviceName") == root["DeviceName"]:
            size = int((device.get("Ebs") or {}).get("VolumeSize", size))
    if size < least:
        raise RefusedError(
            f"Volume of size {size}GB is smaller than snapshot '{root['Ebs']['SnapshotId']}', expect size >= "
            f"{least}GB"
        )
    return size


def _ami_name(template: str) -> str:
    # In microseconds, where AWS uses milliseconds, since builds here take no time.
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    name = template.replace("{{ imagebuilder:buildDate }}", date)
    taken = [each.id for each in ec2().amis.values() if each.name == name]
    if taken:
        raise RefusedError(f"AMI name {name} is already in use by AMI {taken[0]}")
    return name


def _publish(wanted: Properties, ami_id: str) -> None:
    try:
        client("ssm").put_parameter(
            Name=wanted["ParameterName"],
            Value=ami_id,
            Type="String",
            DataType=wanted.get("DataType", "text"),
            Overwrite=True,
        )
    except ClientError as error:
        raise RefusedError(error.response["Error"]["Message"]) from None
