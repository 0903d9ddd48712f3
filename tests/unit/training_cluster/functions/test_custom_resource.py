"""A custom resource with one function: its log exists first, and it may do no more than it is given."""

from typing import Any

import pytest
from aws_cdk import App, Duration, Stack
from aws_cdk.assertions import Template

from training_cluster.functions.custom_resource import Ec2Questions, FunctionResource
from training_cluster.paths import ASSETS


@pytest.fixture(scope="module")
def template() -> Template:
    stack = Stack(App(), "Stack")
    FunctionResource(
        stack,
        "Zone",
        name="Choice",
        resource_type="Custom::Any",
        code=ASSETS / "guard",
        timeout=Duration.minutes(1),
        properties={"Given": "value"},
        questions=Ec2Questions(actions=["DescribeSubnets"], purpose="Looks at subnets"),
    )
    return Template.from_stack(stack)


def test_the_resource_does_not_wait_an_hour(template: Template) -> None:
    template.has_resource_properties("Custom::Any", {"Given": "value", "ServiceTimeout": "600"})
    (log,) = template.find_resources("AWS::Logs::LogGroup")
    functions = template.find_resources("AWS::Lambda::Function").values()
    assert [each["Properties"]["LoggingConfig"]["LogGroup"] for each in functions] == [{"Ref": log}] * 2


def test_the_function_may_make_the_named_calls_alone(template: Template) -> None:
    found = template.find_resources("AWS::IAM::Role", {"Properties": {"Description": "Looks at subnets"}})
    (policy,) = next(iter(found.values()))["Properties"]["Policies"]
    statements: list[dict[str, Any]] = policy["PolicyDocument"]["Statement"]
    actions = {each["Action"]: each["Resource"] for each in statements if isinstance(each["Action"], str)}
    assert actions == {
        "cloudformation:DescribeStacks": {"Ref": "AWS::StackId"},
        "ec2:DescribeSubnets": "*",
    }
