"""EC2 Image Builder's resource types, which both emulators lack, as records; builds end at once."""

import uuid
from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.local_aws.cloudformation.handlers import changed, register
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Properties, ec2
from rehearsal.local_aws.image_builder.builds import BuildRequest, build, known_ami
from rehearsal.local_aws.image_builder.documents import DocumentError, missing_parameters, read
from rehearsal.local_aws.image_builder.records import (
    RECORDS,
    Record,
    RefusedError,
    add,
    find,
    make_arn,
    next_number,
    remove,
)
from rehearsal.local_aws.rights.iam_resources import profile

Make = Callable[[Properties], Record]
Attributes = dict[str, Any]

_LONGEST_DATA = 16000
"""Largest number of characters of a component's document (CreateComponent's data)."""


def install() -> None:
    """Register the resource types."""
    # The create-only properties of CloudFormation's schemas, a change of which replaces the resource.
    _register("Component", _component, in_place={"Tags"})
    _register("ImageRecipe", _recipe, in_place={"Tags"})
    for name, make in (
        ("InfrastructureConfiguration", _infrastructure),
        ("DistributionConfiguration", _distribution),
        ("ImagePipeline", _pipeline),
        ("LifecyclePolicy", _policy),
    ):
        _register(name, make, replaced_by={"Name"})
    # A change of these does not rebuild an image, unless the settings of its pipeline ask for it.
    _register(
        "Image",
        _image,
        in_place={
            "Tags",
            "DeletionSettings",
            "ExecutionRole",
            "LoggingConfiguration",
            "ImagePipelineExecutionSettings",
        },
    )


def _register(
    name: str, make: Make, *, in_place: set[str] | None = None, replaced_by: set[str] | None = None
) -> None:
    def create(_logical_id: str, properties: Properties, _stack: str) -> Created:
        record = make(properties)
        return record.arn, _attributes(record)

    def update(arn: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        different = changed(old, new)
        replaces = different - in_place if in_place is not None else different & (replaced_by or set())
        if replaces or _runs_again(old, new):
            return create(logical_id, new, stack)
        if in_place is None:
            _remake(make, arn, new)
        RECORDS[arn].properties = new
        return arn, _attributes(RECORDS[arn])

    handler = {"create": create, "update": update, "update_with_logical_id": True, "delete": _delete}
    register(f"AWS::ImageBuilder::{name}", handler)


def _remake(make: Make, arn: str, properties: Properties) -> None:
    """Create it again under its ARN; restore the former record if that is refused."""
    former = RECORDS.pop(arn)
    try:
        make(properties)
    except Exception:
        RECORDS[arn] = former
        raise


def _delete(arn: str, properties: Properties) -> None:
    """Delete a resource; the AMI of an image remains, unless its settings delete it as well."""
    if arn in RECORDS and properties.get("DeletionSettings"):
        ec2().deregister_image(RECORDS[arn].details["ami"])
    remove(arn)


def _attributes(record: Record) -> Attributes:
    found: Attributes = {"Arn": record.arn, "Name": record.name}
    if record.kind in ("component", "image-recipe", "image"):
        number = [str(part) for part in record.numbers[:3]]
        wild = {"Arn": 0, "Major": 1, "Minor": 2, "Patch": 3}
        for node, kept in wild.items():
            version = ".".join([*number[:kept], *"xxx"[kept:]])
            found[f"LatestVersion.{node}"] = make_arn(record.kind, record.name, version)
    if record.kind == "component":
        phases = {each["name"] for each in record.details["document"]["phases"]}
        found |= {"Encrypted": "true", "Type": "TEST" if phases == {"test"} else "BUILD"}
    if record.kind == "image":
        found |= {"ImageId": record.details["ami"], "ImageUri": ""}
    if record.kind == "image-pipeline":
        found["DeploymentId"] = record.details["deployment"]
    return found


def _component(properties: Properties) -> Record:
    data = str(properties.get("Data") or "")
    if len(data) > _LONGEST_DATA:
        raise RefusedError(f"The document has {len(data)} characters, {_LONGEST_DATA} at most; give its uri")
    data = data or _read_object(properties["Uri"])
    try:
        document = read(data)
    except DocumentError as error:
        raise RefusedError(f"The component document is not valid: {error}") from None
    number = next_number("component", properties["Name"], properties["Version"])
    record = add("component", properties, properties["Version"], str(number))
    record.details["document"] = document
    return record


def _read_object(uri: str) -> str:
    bucket, _, key = uri.removeprefix("s3://").partition("/")
    try:
        found: bytes = client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    except ClientError:
        raise RefusedError(f"The component document does not exist: {uri}") from None
    return found.decode()


def _recipe(properties: Properties) -> Record:
    known_ami(properties["ParentImage"])
    for each in properties.get("Components") or []:
        component = find(each["ComponentArn"], "component")
        given = {parameter["Name"] for parameter in each.get("Parameters") or []}
        if problem := missing_parameters(component.details["document"], given):
            raise RefusedError(f"{component.name}: {problem}")
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


def _distribution(properties: Properties) -> Record:
    return add("distribution-configuration", properties)


def _pipeline(properties: Properties) -> Record:
    BuildRequest.from_properties(properties)
    record = add("image-pipeline", properties)
    record.details["deployment"] = uuid.uuid4().hex
    return record


def _policy(properties: Properties) -> Record:
    return add("lifecycle-policy", properties)


def _image(properties: Properties) -> Record:
    """Build an image, and raise the reason if the build fails, as CloudFormation reports it."""
    if settings := properties.get("ImagePipelineExecutionSettings"):
        image = run_pipeline(_deployed(settings["DeploymentId"]))
    else:
        image = build(BuildRequest.from_properties(properties))
    if image.details["state"]["status"] == "FAILED":
        raise RefusedError(f"The image {image.arn} was not built: {image.details['state']['reason']}")
    return image


def _deployed(deployment: str) -> Record:
    for each in RECORDS.values():
        if each.kind == "image-pipeline" and each.details["deployment"] == deployment:
            return each
    raise RefusedError(f"No pipeline has the deployment id {deployment}")


def _runs_again(old: Properties, new: Properties) -> bool:
    """Return True if a change of the pipeline builds its image again."""
    was, is_now = (each.get("ImagePipelineExecutionSettings") or {} for each in (old, new))
    asked = str(is_now.get("OnUpdate")).lower() == "true"
    return asked and was.get("DeploymentId") != is_now.get("DeploymentId")


def run_pipeline(pipeline: Record) -> Record:
    """Run a pipeline once. Raises RefusedError if a resource that it names does not exist."""
    return build(BuildRequest.from_properties(pipeline.properties, pipeline))
