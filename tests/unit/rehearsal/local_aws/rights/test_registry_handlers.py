"""The rights that CloudFormation's handlers need."""

from dataclasses import replace
from typing import Any

from rehearsal.local_aws.rights.need import Need
from rehearsal.local_aws.rights.registry_handlers import Resource, needs

BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"


def _needs(type_: str, operation: str = "create", **properties: Any) -> dict[str, list[Need]]:
    resource = Resource(type=type_, logical_id="It", physical_id="", stack="training", properties=properties)
    found: dict[str, list[Need]] = {}
    for each in needs(resource, operation):
        found.setdefault(each.action, []).append(each)
    return found


def test_role_is_judged_by_path_and_boundary() -> None:
    found = _needs("AWS::IAM::Role", Path="/parallelcluster/training/", PermissionsBoundary=BOUNDARY)
    [create] = found["iam:CreateRole"]
    assert create.resource.startswith("arn:aws:iam::123456789012:role/parallelcluster/training/training-It-")
    assert create.context == {"iam:PermissionsBoundary": BOUNDARY}


def test_each_managed_policy_of_a_role_is_judged() -> None:
    assert "iam:AttachRolePolicy" not in _needs("AWS::IAM::Role")
    [attach] = _needs("AWS::IAM::Role", ManagedPolicyArns=[ADMINISTRATOR])["iam:AttachRolePolicy"]
    assert attach.context == {"iam:PolicyARN": ADMINISTRATOR}


def test_function_is_judged_by_name_code_and_role() -> None:
    code = {"S3Bucket": "scripts", "S3Key": "a/b.zip"}
    role = "arn:aws:iam::123456789012:role/parallelcluster/training-Cleanup"
    found = _needs("AWS::Lambda::Function", FunctionName="pcluster-a", Code=code, Role=role)
    assert found["lambda:CreateFunction"][0].resource.endswith(":function:pcluster-a")
    assert found["s3:GetObject"][0].resource == "arn:aws:s3:::scripts/a/b.zip"
    [passed] = found["iam:PassRole"]
    assert (passed.resource, passed.context) == (role, {"iam:PassedToService": "lambda.amazonaws.com"})


def test_unset_property_needs_no_right() -> None:
    table = _needs("AWS::DynamoDB::Table", TableName="parallelcluster-training")
    assert not [action for action in table if not action.startswith("dynamodb:")]
    assert "s3:GetObjectVersion" not in _needs("AWS::Lambda::Function", Code={}, Role="")


def test_set_property_needs_its_action() -> None:
    nested = [{"SSESpecification": {"SSEEnabled": True}}]
    assert "kms:CreateGrant" not in _needs("AWS::DynamoDB::Table", TableName="a")
    assert "kms:CreateGrant" in _needs("AWS::DynamoDB::Table", TableName="a", Nested=nested)
    assert "kms:CreateGrant" not in _needs("AWS::DynamoDB::Table", "delete", TableName="a", Nested=nested)


def test_nested_stack_is_judged_with_its_tags() -> None:
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "training"}]
    [create] = _needs("AWS::CloudFormation::Stack", Tags=tags)["cloudformation:CreateStack"]
    assert create.resource.startswith("arn:aws:cloudformation:us-east-1:123456789012:stack/training-It-")
    assert create.context == {"aws:TagKeys": ["parallelcluster:cluster-name"]}


def test_a_custom_resource_is_judged_by_its_function() -> None:
    token = "arn:aws:lambda:us-east-1:123456789012:function:pcluster-CleanupResources"
    for type_ in ("Custom::Cleanup", "AWS::CloudFormation::CustomResource"):
        assert _needs(type_, ServiceToken=token) == {
            "lambda:InvokeFunction": [Need(action="lambda:InvokeFunction", resource=token)]
        }


def test_a_type_that_takes_no_rights_needs_none() -> None:
    assert _needs("AWS::CloudFormation::WaitCondition") == {}


def test_attribute_needs_its_action() -> None:
    group = Resource(
        type="AWS::AutoScaling::AutoScalingGroup", logical_id="It", physical_id="", stack="training"
    )
    action = "autoscaling:StartInstanceRefresh"
    assert action not in {each.action for each in needs(group, "update")}
    updated = replace(group, attributes=frozenset({"UpdatePolicy"}))
    assert action in {each.action for each in needs(updated, "update")}


def test_a_type_without_handlers_is_denied() -> None:
    for unknown in ("AWS::New::Thing", "AWS::CodeBuild::Project"):
        assert list(_needs(unknown)) == [f"undeclared:{unknown}"]


def test_types_that_no_policy_is_for_are_judged() -> None:
    """By the registry's schemas: permissions.tsv names none of the queue's actions."""
    assert "sqs:CreateQueue" in _needs("AWS::SQS::Queue")
    rule = _needs("AWS::EC2::SecurityGroupIngress")
    assert {"ec2:AuthorizeSecurityGroupIngress", "ec2:DescribeSecurityGroupRules"} <= rule.keys()
