"""Acknowledged findings of cdk-nag: each with its resource, and no more than it."""

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from tools.nag import DO_NOT_FAIL, Found, add_rules
from training_cluster.acknowledgements import acknowledge_wildcards


@pytest.fixture
def app(tmp_path: Path) -> cdk.App:
    return cdk.App(context=DO_NOT_FAIL, outdir=str(tmp_path), analytics_reporting=False)


def findings(app: cdk.App) -> list[str]:
    """Return the rules that an app breaks, without those of CDK's validation."""
    add_rules(app)
    app.synth()
    found = Found()
    found.read(Path(app.outdir))
    return sorted(each.split(": ")[0].split()[-1] for each in found.problems if "AwsSolutions" in each)


def test_an_acknowledged_wildcard_hides_no_other(app: cdk.App) -> None:
    """Also when it has the name of another stack's export in it, which is not known when it is written."""
    bucket = s3.Bucket(cdk.Stack(app, "Data"), "Bucket", enforce_ssl=True, server_access_logs_prefix="logs/")
    stack = cdk.Stack(app, "Stack")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    queues = f"arn:{cdk.Aws.PARTITION}:sqs:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:jobs-*"
    resources = [bucket.arn_for_objects("*"), queues, "*"]
    role.add_to_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=resources))
    acknowledge_wildcards(role, resources[:2], "a test")
    assert findings(app) == ["AwsSolutions-IAM5[Resource::*]"]
