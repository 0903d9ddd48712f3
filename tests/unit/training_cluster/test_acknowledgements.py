"""Acknowledged findings of cdk-nag: each with its resource, and no more than it."""

import json
from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from cdk_nag import AwsSolutionsChecks

from training_cluster.acknowledgements import acknowledge_wildcards


@pytest.fixture
def app(tmp_path: Path) -> cdk.App:
    context = {"@aws-cdk/core:failSynthOnValidationErrors": False}
    return cdk.App(context=context, outdir=str(tmp_path), analytics_reporting=False)


def findings(app: cdk.App) -> list[str]:
    """Return the rules that an app breaks, without those of CDK's validation."""
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    app.synth()
    report = json.loads((Path(app.outdir) / "validation-report.json").read_text())
    names = (each["ruleName"] for plugin in report["pluginReports"] for each in plugin["violations"])
    return sorted(name for name in names if "AwsSolutions" in name)


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
