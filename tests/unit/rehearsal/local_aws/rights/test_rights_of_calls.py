"""The rights that a request and CloudFormation's handlers need."""

import json
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from rehearsal.local_aws.rights.need import Need
from rehearsal.local_aws.rights.registry_handlers import Resource
from rehearsal.local_aws.rights.registry_handlers import needs as needs_of_handler
from rehearsal.local_aws.rights.requests import Request, needs

ARN = "arn:aws:{}:us-east-1:123456789012:{}"
FORM = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}


def signed(service: str) -> dict[str, str]:
    credential = f"AWS4-HMAC-SHA256 Credential=ASIA/20260101/us-east-1/{service}/aws4_request, Signature=0"
    return {"host": "localhost:4566", "authorization": credential}


def form(service: str, **parameters: str) -> list[Need]:
    given = {name.replace("_", "."): value for name, value in parameters.items()}
    return needs(
        Request(
            service=service,
            method="POST",
            path="/",
            query="",
            headers=signed(service) | FORM,
            body=urlencode(given).encode(),
        )
    )


def target(service: str, name: str, **members: Any) -> list[Need]:
    headers = signed(service) | {"x-amz-target": name, "content-type": "application/x-amz-json-1.1"}
    body = json.dumps(members).encode()
    return needs(Request(service=service, method="POST", path="/", query="", headers=headers, body=body))


def rest(service: str, method: str, path: str, query: str = "") -> list[Need]:
    return needs(
        Request(service=service, method=method, path=path, query=query, headers=signed(service), body=b"")
    )


def named(found: list[Need]) -> list[tuple[str, str]]:
    return [(each.action, each.resource) for each in found]


def test_stack_is_judged_with_tags_and_template() -> None:
    found = form(
        "cloudformation",
        Action="CreateStack",
        StackName="training",
        Tags_member_1_Key="parallelcluster:cluster-name",
        Tags_member_1_Value="training",
        TemplateURL="https://parallelcluster-a.s3.us-east-1.amazonaws.com/templates/t.yaml?versionId=1",
    )
    stack = ARN.format("cloudformation", "stack/training/*")
    assert named(found) == [
        ("cloudformation:CreateStack", stack),
        ("cloudformation:TagResource", stack),
        ("s3:GetObject", "arn:aws:s3:::parallelcluster-a/templates/t.yaml"),
    ]
    assert found[0].context["aws:TagKeys"] == ["parallelcluster:cluster-name"]


INSTANCES = {"InstanceId_1": "i-1", "InstanceId_2": "i-2"}
COMMAND = {"DocumentName": "AWS-RunShellScript", "InstanceIds": ["i-1"]}


def test_request_is_judged_by_action_and_resource() -> None:
    fsx, efs, iam = "AWSSimbaAPIService_v20180301", "elasticfilesystem", "arn:aws:iam::123456789012"
    stream = {"logGroupName": "a", "logStreamName": "b"}
    run = {"Action": "RunInstances", "TagSpecification_1_ResourceType": "instance"}
    cases: tuple[tuple[Any, ...], ...] = (
        (form("ec2", Action="DescribeInstances", InstanceId_1="i-1"), "ec2:DescribeInstances *"),
        (
            form("ec2", Action="TerminateInstances", **INSTANCES),
            *(f"ec2:TerminateInstances {ARN.format('ec2', f'instance/{each}')}" for each in ("i-1", "i-2")),
        ),
        (form("ec2", **run), "ec2:RunInstances *", "ec2:CreateTags *"),
        (
            target("ssm", "AmazonSSM.SendCommand", **COMMAND),
            "ssm:SendCommand arn:aws:ssm:us-east-1::document/AWS-RunShellScript",
            f"ssm:SendCommand {ARN.format('ec2', 'instance/i-1')}",
        ),
        (
            target("logs", "Logs_20140328.PutLogEvents", **stream),
            f"logs:PutLogEvents {ARN.format('logs', 'log-group:a:log-stream:b')}",
        ),
        (
            target("fsx", f"{fsx}.DescribeFileSystems", FileSystemIds=["fs-1"]),
            f"fsx:DescribeFileSystems {ARN.format('fsx', 'file-system/fs-1')}",
        ),
        (
            rest(efs, "GET", "/2015-02-01/mount-targets", "FileSystemId=fs-1"),
            f"{efs}:DescribeMountTargets {ARN.format(efs, 'file-system/*')}",
        ),
        (rest("imagebuilder", "POST", "/GetImage"), "imagebuilder:GetImage *"),
        (rest("s3", "GET", "/a-bucket/a/key"), "s3:GetObject arn:aws:s3:::a-bucket/a/key"),
        (rest("s3", "HEAD", "/a-bucket"), "s3:ListBucket arn:aws:s3:::a-bucket"),
        (
            form("iam", Action="PutRolePolicy", RoleName="r", PolicyName="a"),
            f"iam:PutRolePolicy {iam}:role/r",
        ),
    )
    for found, *expected in cases:
        assert [" ".join(each) for each in named(found)] == expected


def test_unknown_action_needs_a_right_of_nobody() -> None:
    [need] = rest("lambda", "GET", "/no-such-path")
    assert need.action == "lambda:GET /no-such-path"


BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
ADMINISTRATOR = "arn:aws:iam::aws:policy/AdministratorAccess"


def _needs(type_: str, operation: str = "create", **properties: Any) -> dict[str, list[Need]]:
    resource = Resource(type=type_, logical_id="It", physical_id="", stack="training", properties=properties)
    found: dict[str, list[Need]] = {}
    for each in needs_of_handler(resource, operation):
        found.setdefault(each.action, []).append(each)
    return found


def test_role_is_judged_by_path_boundary_and_policies() -> None:
    found = _needs("AWS::IAM::Role", Path="/parallelcluster/training/", PermissionsBoundary=BOUNDARY)
    [create] = found["iam:CreateRole"]
    assert create.resource.startswith("arn:aws:iam::123456789012:role/parallelcluster/training/training-It-")
    assert create.context == {"iam:PermissionsBoundary": BOUNDARY}
    assert "iam:AttachRolePolicy" not in _needs("AWS::IAM::Role")
    [attach] = _needs("AWS::IAM::Role", ManagedPolicyArns=[ADMINISTRATOR])["iam:AttachRolePolicy"]
    assert attach.context == {"iam:PolicyARN": ADMINISTRATOR}


def test_resources_are_judged_by_their_properties() -> None:
    code = {"S3Bucket": "scripts", "S3Key": "a/b.zip"}
    role = "arn:aws:iam::123456789012:role/parallelcluster/training-Cleanup"
    found = _needs("AWS::Lambda::Function", FunctionName="pcluster-a", Code=code, Role=role)
    assert found["lambda:CreateFunction"][0].resource.endswith(":function:pcluster-a")
    assert found["s3:GetObject"][0].resource == "arn:aws:s3:::scripts/a/b.zip"
    [passed] = found["iam:PassRole"]
    assert (passed.resource, passed.context) == (role, {"iam:PassedToService": "lambda.amazonaws.com"})
    tags = [{"Key": "parallelcluster:cluster-name", "Value": "training"}]
    [create] = _needs("AWS::CloudFormation::Stack", Tags=tags)["cloudformation:CreateStack"]
    assert create.resource.startswith("arn:aws:cloudformation:us-east-1:123456789012:stack/training-It-")
    assert create.context == {"aws:TagKeys": ["parallelcluster:cluster-name"]}
    token = "arn:aws:lambda:us-east-1:123456789012:function:pcluster-CleanupResources"
    for type_ in ("Custom::Cleanup", "AWS::CloudFormation::CustomResource"):
        assert _needs(type_, ServiceToken=token) == {
            "lambda:InvokeFunction": [Need(action="lambda:InvokeFunction", resource=token)]
        }


def test_only_what_is_set_needs_its_action() -> None:
    table = _needs("AWS::DynamoDB::Table", TableName="parallelcluster-training")
    assert not [action for action in table if not action.startswith("dynamodb:")]
    assert "s3:GetObjectVersion" not in _needs("AWS::Lambda::Function", Code={}, Role="")
    nested = [{"SSESpecification": {"SSEEnabled": True}}]
    assert "kms:CreateGrant" not in _needs("AWS::DynamoDB::Table", TableName="a")
    assert "kms:CreateGrant" in _needs("AWS::DynamoDB::Table", TableName="a", Nested=nested)
    assert "kms:CreateGrant" not in _needs("AWS::DynamoDB::Table", "delete", TableName="a", Nested=nested)
    group = Resource(
        type="AWS::AutoScaling::AutoScalingGroup", logical_id="It", physical_id="", stack="training"
    )
    action = "autoscaling:StartInstanceRefresh"
    assert action not in {each.action for each in needs_of_handler(group, "update")}
    updated = replace(group, attributes=frozenset({"UpdatePolicy"}))
    assert action in {each.action for each in needs_of_handler(updated, "update")}


def test_each_type_has_the_rights_of_its_handlers() -> None:
    """By the registry's schemas: permissions.tsv names none of the queue's actions."""
    assert _needs("AWS::CloudFormation::WaitCondition") == {}
    for unknown in ("AWS::New::Thing", "AWS::CodeBuild::Project"):
        assert list(_needs(unknown)) == [f"undeclared:{unknown}"]
    assert "sqs:CreateQueue" in _needs("AWS::SQS::Queue")
    rule = _needs("AWS::EC2::SecurityGroupIngress")
    assert {"ec2:AuthorizeSecurityGroupIngress", "ec2:DescribeSecurityGroupRules"} <= rule.keys()
