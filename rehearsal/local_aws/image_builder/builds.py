"""Builds of images: each makes an AMI like its parent, and puts its id in the distribution's SSM parameters.

No instance starts and no component runs. Errors before or after these steps fail the build, as on AWS.
"""

import datetime
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.local_aws.address import REGION
from rehearsal.local_aws.ec2.images import copy_image
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import ec2
from rehearsal.local_aws.image_builder.records import RECORDS, Record, RefusedError, add, find, next_number

# Prefixes to which Image Builder's own role may write (its policy AWSServiceRoleForImageBuilder).
_OWN_PARAMETERS, _OWN_LOGS = "/imagebuilder/", "/aws/imagebuilder/"


@dataclass(frozen=True, kw_only=True)
class BuildRequest:
    """Inputs of a build, by ARN."""

    recipe: str
    distribution: str | None
    execution_role: str | None
    log_group: str | None
    tags: dict[str, str]
    pipeline_arn: str | None = None

    @classmethod
    def from_properties(cls, properties: dict[str, Any], pipeline: Record | None = None) -> "BuildRequest":
        """Read the properties of an AWS::ImageBuilder::Image or ::ImagePipeline, which have the same names.

        Raises:
            RefusedError: a resource that it names does not exist.
        """
        recipe = find(properties["ImageRecipeArn"], "image-recipe").arn
        distribution = properties.get("DistributionConfigurationArn")
        logs = properties.get("LoggingConfiguration") or {}
        find(properties["InfrastructureConfigurationArn"], "infrastructure-configuration")
        if distribution:
            find(distribution, "distribution-configuration")
        return cls(
            recipe=recipe,
            distribution=distribution,
            execution_role=properties.get("ExecutionRole"),
            log_group=logs.get("LogGroupName") or logs.get("ImageLogGroupName"),
            tags=properties.get("ImageTags" if pipeline else "Tags") or {},
            pipeline_arn=pipeline.arn if pipeline else None,
        )


def build(order: BuildRequest) -> Record:
    """Build an image; its details contain the state, available or failed."""
    recipe = RECORDS[order.recipe]
    version = ".".join(str(part) for part in recipe.numbers)
    number = next_number("image", recipe.name, version)
    image = add("image", {"Name": recipe.name}, version, str(number))
    image.details = {"recipe": recipe.arn, "order": order, "state": {"status": "AVAILABLE"}}
    try:
        image.details |= _make_ami(order, image)
    except RefusedError as error:
        image.details["state"] = {"status": "FAILED", "reason": str(error)}
    return image


def _make_ami(order: BuildRequest, image: Record) -> dict[str, Any]:
    recipe = RECORDS[order.recipe].properties
    parent = known_ami(recipe["ParentImage"])
    distribution = _distribution(order)
    wanted = distribution.get("AmiDistributionConfiguration") or {}
    parameters = distribution.get("SsmParameterConfigurations") or []
    if not order.execution_role:
        _refuse_what_is_not_image_builders_own(order, parameters)
    ami = copy_image(
        parent,
        name=_ami_name(wanted.get("Name"), image),
        description=wanted.get("Description") or "",
        root_gib=_root_gib(recipe, parent),
        tags={
            **(recipe.get("AmiTags") or {}),
            **(wanted.get("AmiTags") or {}),
            "CreatedBy": "EC2 Image Builder",
            "Ec2ImageBuilderArn": image.arn,
        },
    )
    for each in parameters:
        _publish(each, ami.id)
    return {"ami": ami.id, "ami_name": ami.name}


def _refuse_what_is_not_image_builders_own(order: BuildRequest, parameters: list[dict[str, Any]]) -> None:
    for each in parameters:
        if not each["ParameterName"].startswith(_OWN_PARAMETERS):
            raise RefusedError(
                "AWSServiceRoleForImageBuilder is not authorized to perform: ssm:PutParameter on "
                f"{each['ParameterName']}"
            )
    if order.log_group and not order.log_group.startswith(_OWN_LOGS):
        raise RefusedError(
            "AWSServiceRoleForImageBuilder is not authorized to perform: logs:PutLogEvents on "
            f"{order.log_group}"
        )


def _distribution(order: BuildRequest) -> dict[str, Any]:
    """Return the distribution's settings for this region; other regions are ignored."""
    distributions = RECORDS[order.distribution].properties["Distributions"] if order.distribution else []
    here: list[dict[str, Any]] = [each for each in distributions if each["Region"] == REGION]
    if distributions and not here:
        raise RefusedError(f"{REGION}, where the image is built, is not in the distribution")
    return here[0] if here else {}


def known_ami(id_: str) -> Any:
    """Return moto's record of an image. Raises RefusedError if there is none."""
    image = ec2().amis.get(id_)
    if image is None:
        raise RefusedError(
            f"The value supplied for parameter 'parentImage' is not valid. The image {id_} does not exist."
        )
    return image


def _root_gib(recipe: dict[str, Any], parent: Any) -> int:
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


def _ami_name(template: str | None, image: Record) -> str:
    # In microseconds, where AWS uses milliseconds, since builds here take no time.
    date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H-%M-%S.%fZ")
    name = template or f"{image.name} {{{{ imagebuilder:buildDate }}}}"
    for variable, value in (("buildDate", date), ("buildVersion", str(image.numbers[-1]))):
        for form in (f"{{{{ imagebuilder:{variable} }}}}", f"{{{{imagebuilder:{variable}}}}}"):
            name = name.replace(form, value)
    taken = [each.id for each in ec2().amis.values() if each.name == name]
    if taken:
        raise RefusedError(f"AMI name {name} is already in use by AMI {taken[0]}")
    return name


def _publish(wanted: dict[str, Any], ami_id: str) -> None:
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
