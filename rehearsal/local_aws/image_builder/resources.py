"""EC2 Image Builder's resource types, which both emulators lack, as records; builds end at once."""

from collections.abc import Callable
from typing import Any

import yaml

from rehearsal.local_aws.cloudformation.handlers import changed, register
from rehearsal.local_aws.emulators.moto_types import Created, Properties, ec2
from rehearsal.local_aws.image_builder.builds import build, known_ami, named
from rehearsal.local_aws.image_builder.records import (
    RECORDS,
    Record,
    RefusedError,
    add,
    find,
    next_number,
    remove,
)
from rehearsal.local_aws.rights.iam_resources import profile

Make = Callable[[Properties], Record]

_LONGEST_DATA = 16000
"""Largest number of characters of a component's document (CreateComponent's data)."""


def install() -> None:
    """Register the resource types."""
    # The create-only properties of CloudFormation's schemas, a change of which replaces the resource.
    _register("Component", _component, in_place={"Tags"})
    _register("ImageRecipe", _recipe, in_place={"Tags"})
    _register("InfrastructureConfiguration", _infrastructure)
    _register("DistributionConfiguration", lambda wanted: add("distribution-configuration", wanted))
    _register("ImagePipeline", _pipeline)
    _register("LifecyclePolicy", lambda wanted: add("lifecycle-policy", wanted))
    # A change of these does not rebuild an image.
    _register("Image", _image, in_place={"Tags", "LoggingConfiguration"})


def _register(name: str, make: Make, *, in_place: set[str] | None = None) -> None:
    """Register a type; a change of what is not in place replaces it, by default only one of its name."""

    def create(_logical_id: str, properties: Properties, _stack: str) -> Created:
        record = make(properties)
        return record.arn, _attributes(record)

    def update(arn: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        different = changed(old, new)
        if different & {"Name"} if in_place is None else different - in_place:
            return create(logical_id, new, stack)
        if in_place is None:
            _remake(make, arn, new)
        RECORDS[arn].properties = new
        return arn, _attributes(RECORDS[arn])

    def delete(arn: str, _: Properties) -> None:
        remove(arn)  # the AMI of an image remains

    handler = {"create": create, "update": update, "update_with_logical_id": True, "delete": delete}
    register(f"AWS::ImageBuilder::{name}", handler)


def _remake(make: Make, arn: str, properties: Properties) -> None:
    """Create it again under its ARN; restore the former record if that is refused."""
    former = RECORDS.pop(arn)
    try:
        make(properties)
    except Exception:
        RECORDS[arn] = former
        raise


def _attributes(record: Record) -> dict[str, Any]:
    found = {"Arn": record.arn, "Name": record.name}
    return found | ({"ImageId": record.details["ami"]} if record.kind == "image" else {})


def _component(properties: Properties) -> Record:
    data = str(properties["Data"])
    if len(data) > _LONGEST_DATA:
        raise RefusedError(f"The document has {len(data)} characters, {_LONGEST_DATA} at most; give its uri")
    number = next_number("component", properties["Name"], properties["Version"])
    record = add("component", properties, properties["Version"], str(number))
    declared = yaml.safe_load(data).get("parameters") or []  # a test compares the document with its rules
    record.details["parameters"] = {name: facts for each in declared for name, facts in each.items()}
    return record


def _recipe(properties: Properties) -> Record:
    known_ami(properties["ParentImage"])
    for each in properties.get("Components") or []:
        component = find(each["ComponentArn"], "component")
        given = {parameter["Name"] for parameter in each.get("Parameters") or []}
        declared = component.details["parameters"]
        needed = {name for name, facts in declared.items() if "default" not in facts}
        if unknown := given - declared.keys():
            raise RefusedError(f"{component.name} does not declare {', '.join(sorted(unknown))}")
        if lacking := needed - given:
            raise RefusedError(f"{component.name}: no value of {', '.join(sorted(lacking))}")
    version = properties["Version"]
    if version.count("x") == 1:
        number = next_number("image-recipe", properties["Name"], version)
        version = version.replace("x", str(number))
    return add("image-recipe", properties, version)


def _infrastructure(properties: Properties) -> Record:
    if not profile(properties["InstanceProfileName"]):
        raise RefusedError(
            "The value supplied for parameter 'instanceProfileName' is not valid. The provided instance "
            f"profile does not exist: {properties['InstanceProfileName']}"
        )
    if types := properties.get("InstanceTypes"):
        ec2().describe_instance_types(types)
    if subnet := properties.get("SubnetId"):
        ec2().get_subnet(subnet)
        if not properties.get("SecurityGroupIds"):
            raise RefusedError("A subnet also requires security groups: securityGroupIds")
    for group in properties.get("SecurityGroupIds") or []:
        if ec2().get_security_group_from_id(group) is None:
            raise RefusedError(f"The security group {group} does not exist")
    return add("infrastructure-configuration", properties)


def _pipeline(properties: Properties) -> Record:
    named(properties)
    return add("image-pipeline", properties)


def _image(properties: Properties) -> Record:
    """Build an image, and raise the reason if the build fails, as CloudFormation reports it."""
    image = build(properties, properties.get("Tags"))
    if image.details["state"]["status"] == "FAILED":
        raise RefusedError(f"The image {image.arn} was not built: {image.details['state']['reason']}")
    return image


def run_pipeline(pipeline: Record) -> Record:
    """Run a pipeline once. Raises RefusedError if a resource that it names does not exist."""
    return build(pipeline.properties, pipeline.properties.get("ImageTags"))
