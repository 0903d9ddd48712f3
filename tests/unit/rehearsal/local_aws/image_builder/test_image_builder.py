"""Image Builder on the local AWS: documents, versions, builds, pipelines, and what AWS refuses."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Handler, Properties, ec2
from rehearsal.local_aws.image_builder import actions as image_builder_actions
from rehearsal.local_aws.image_builder import resources as image_builder
from rehearsal.local_aws.image_builder.records import RECORDS, RefusedError
from training_cluster.flags.cluster import PCLUSTER_VERSION

ARN = "arn:aws:imagebuilder:us-east-1:123456789012"
PARAMETER = "/imagebuilder/training-cluster/gpu"


def document(**more: Any) -> str:
    return yaml.safe_dump({"schemaVersion": 1.0, "phases": [], **more})


@pytest.fixture
def types(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Handler]]:
    """The handlers as CloudFormation's engine calls them, on an account with a parent image and a profile."""
    handlers: dict[str, Handler] = {}
    monkeypatch.setattr(image_builder, "register", handlers.__setitem__)
    image_builder.install()
    client("iam").create_instance_profile(InstanceProfileName="builder")
    yield handlers
    RECORDS.clear()
    client("iam").delete_instance_profile(InstanceProfileName="builder")


@pytest.fixture
def parent() -> Any:
    found = ec2().register_image("parent", "")
    found.architecture, found.virtualization_type, found.ena_support = "x86_64", "hvm", True
    yield found
    ec2().deregister_image(found.id)


class Stack:
    """The resources of an image's stack, made and changed one by one."""

    def __init__(self, types: dict[str, Handler], parent: Any) -> None:
        self._types, self.parent = types, parent

    def create(self, name: str, **properties: Any) -> Created:
        created: Created = self._types[f"AWS::ImageBuilder::{name}"]["create"]("Id", properties, "stack")
        return created

    def update(self, name: str, arn: str, old: Properties, new: Properties) -> Created:
        handler = self._types[f"AWS::ImageBuilder::{name}"]
        updated: Created = handler["update"](arn, old, new, "stack", "Id")
        return updated

    def delete(self, name: str, arn: str) -> None:
        self._types[f"AWS::ImageBuilder::{name}"]["delete"](arn, {})

    def component(self, **more: Any) -> Created:
        wanted = {"Name": "node", "Version": "1.0.0", "Platform": "Linux", "Data": document(), **more}
        return self.create("Component", **wanted)

    def recipe(self, *components: str, **more: Any) -> Created:
        wanted = {
            "Name": "Node Image",
            "Version": "1.0.x",
            "ParentImage": self.parent.id,
            "Components": [{"ComponentArn": arn} for arn in components],
            **more,
        }
        return self.create("ImageRecipe", **wanted)

    def order(self, recipe: str, **distribution: Any) -> Properties:
        """Return the inputs of an image and a pipeline."""
        wanted = {
            "Region": "us-east-1",
            "AmiDistributionConfiguration": {
                "Name": "node {{ imagebuilder:buildDate }}",
                "AmiTags": {"parallelcluster:version": PCLUSTER_VERSION},
            },
            "SsmParameterConfigurations": [{"ParameterName": PARAMETER, "DataType": "aws:ec2:image"}],
        }
        infrastructure = self.create(
            "InfrastructureConfiguration", Name="node", InstanceProfileName="builder"
        )
        made = self.create(
            "DistributionConfiguration", Name="node", Distributions=[{**wanted, **distribution}]
        )
        return {
            "ImageRecipeArn": recipe,
            "InfrastructureConfigurationArn": infrastructure[0],
            "DistributionConfigurationArn": made[0],
        }


@pytest.fixture
def stack(types: dict[str, Handler], parent: Any) -> Stack:
    return Stack(types, parent)


def published() -> str:
    return str(client("ssm").get_parameter(Name=PARAMETER)["Parameter"]["Value"])


def test_versions_count_up(stack: Stack) -> None:
    components = [stack.component() for _ in range(2)]
    assert [arn for arn, _ in components] == [f"{ARN}:component/node/1.0.0/{number}" for number in (1, 2)]
    _, listed = call("ListComponentBuildVersions", componentVersionArn=f"{ARN}:component/node/1.0.0")
    assert [each["arn"] for each in listed["componentSummaryList"]] == [arn for arn, _ in components]
    recipes = [stack.recipe()[0] for _ in range(2)]
    assert recipes == [f"{ARN}:image-recipe/node-image/1.0.{number}" for number in (0, 1)]


def test_same_or_wrong_version_is_refused(stack: Stack) -> None:
    for version in ("1.0.x", "1.0", "1.0.1073741824", "01.0.0"):
        with pytest.raises(RefusedError, match="'semanticVersion' is not valid"):
            stack.component(Version=version)
    stack.recipe(Version="1.0.0")
    with pytest.raises(RefusedError, match=r"ImageRecipe'.*node-image/1.0.0' already exists"):
        stack.recipe(Version="1.0.0", Description="another")
    properties = {"Name": "node", "InstanceProfileName": "builder"}
    stack.create("InfrastructureConfiguration", **properties)
    with pytest.raises(RefusedError, match="already exists"):
        stack.create("InfrastructureConfiguration", **properties)


def test_named_resource_has_to_exist(stack: Stack) -> None:
    with pytest.raises(RefusedError, match="The image ami-0 does not exist"):
        stack.recipe(ParentImage="ami-0")
    with pytest.raises(RefusedError, match=r"/none/1.* does not exist"):
        stack.recipe(f"{ARN}:component/none/1.0.0/1")
    with pytest.raises(RefusedError, match="instance profile does not exist: nobody"):
        stack.create("InfrastructureConfiguration", Name="node", InstanceProfileName="nobody")
    for name, unknown in (("InstanceTypes", "p5.tiny"), ("SecurityGroupIds", "sg-0")):
        wanted = {"Name": "one", "InstanceProfileName": "builder", name: [unknown]}
        with pytest.raises(Exception, match=unknown):
            stack.create("InfrastructureConfiguration", **wanted)
    with pytest.raises(RefusedError, match=r"/none/1.* does not exist"):
        stack.create("Image", **stack.order(f"{ARN}:image-recipe/none/1.0.0"))


def test_components_are_read_by_their_recipe(stack: Stack) -> None:
    component, _ = stack.component(Data=document(parameters=[{"Recipe": {"type": "string"}}]))
    with pytest.raises(RefusedError, match="node: no value of Recipe"):
        stack.recipe(component)


def test_a_build_that_fails_on_aws_says_why(stack: Stack) -> None:
    small, _ = stack.recipe(BlockDeviceMappings=[{"DeviceName": "/dev/sda1", "Ebs": {"VolumeSize": 8}}])
    order = stack.order(small)
    with pytest.raises(RefusedError, match=r"was not built: Volume of size 8GB is smaller than snapshot"):
        stack.create("Image", **order)
    named, _ = stack.recipe(BlockDeviceMappings=[{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 8}}])
    stack.create("Image", **{**order, "ImageRecipeArn": named})  # that is no root volume here
    logs = {"LoggingConfiguration": {"LogGroupName": "/mine"}}
    with pytest.raises(RefusedError, match="not authorized to perform: logs:PutLogEvents on /mine"):
        stack.create("Image", **{**order, **logs, "ImageRecipeArn": named})


@pytest.mark.parametrize(
    ("distribution", "words"),
    [
        (
            {"SsmParameterConfigurations": [{"ParameterName": "/training-cluster/gpu"}]},
            "not authorized to perform: ssm:PutParameter on /training-cluster/gpu",
        ),
        ({"AmiDistributionConfiguration": {"Name": "parent"}}, "AMI name parent is already in use"),
    ],
)
def test_a_distribution_that_fails_on_aws_says_why(
    stack: Stack, distribution: dict[str, Any], words: str
) -> None:
    recipe, _ = stack.recipe()
    order = stack.order(recipe, **distribution)
    with pytest.raises(RefusedError, match=words):
        stack.create("Image", **order)


def test_image_is_built_again_for_another_recipe(stack: Stack) -> None:
    order = stack.order(stack.recipe()[0])
    arn, attributes = stack.create("Image", **order)
    assert stack.update("Image", arn, order, {**order, "Tags": {"a": "b"}}) == (arn, attributes)
    again, newer = stack.update("Image", arn, order, {**order, "ImageRecipeArn": stack.recipe()[0]})
    assert again == f"{ARN}:image/node-image/1.0.1/1"
    assert newer["ImageId"] != attributes["ImageId"]
    assert published() == newer["ImageId"]


def test_what_others_need_is_not_deleted(stack: Stack) -> None:
    component, _ = stack.component()
    recipe, _ = stack.recipe(component)
    image, _ = stack.create("Image", **stack.order(recipe))
    for name, arn in (("Component", component), ("ImageRecipe", recipe)):
        with pytest.raises(RefusedError, match="has other resources that depend on it"):
            stack.delete(name, arn)
    ami = RECORDS[image].details["ami"]
    for name, arn in (("Image", image), ("ImageRecipe", recipe), ("Component", component)):
        stack.delete(name, arn)
    assert ami in ec2().amis


def call(action: str, **request: Any) -> tuple[int, dict[str, Any]]:
    status, body = image_builder_actions.answer(f"/{action}", b"", json.dumps(request).encode())
    return status, json.loads(body)


def test_a_pipeline_makes_a_newer_image_each_time(stack: Stack) -> None:
    recipe, _ = stack.recipe()
    order = stack.order(recipe)
    first = stack.create("Image", **order)[1]["ImageId"]
    pipeline, _ = stack.create("ImagePipeline", Name="node", **order)
    status, started = call("StartImagePipelineExecution", imagePipelineArn=pipeline, clientToken="t")
    assert (status, started["imageBuildVersionArn"]) == (200, f"{ARN}:image/node-image/1.0.0/2")
    assert first != published()
    _, listed = call("ListImageBuildVersions", imageVersionArn=f"{ARN}:image/node-image/1.0.0")
    assert [each["state"] for each in listed["imageSummaryList"]] == 2 * [{"status": "AVAILABLE"}]
    assert len(call("ListImages")[1]["imageVersionList"]) == 1
