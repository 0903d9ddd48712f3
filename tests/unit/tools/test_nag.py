"""cdk-nag and CDK's validation of templates: no finding without a reason, no reason without a finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from tools.nag import DO_NOT_FAIL, Found, add_rules, main
from tools.synth_families import OTHERS, synth
from training_cluster.acknowledgements import acknowledge, acknowledge_wildcards

FOLDER = "report"


def report(tmp_path: Path, *plugins: dict[str, Any], acknowledged: tuple[str, ...] = ()) -> Path:
    """Write an app's folder, as synth does."""
    folder = tmp_path / FOLDER
    folder.mkdir()
    (folder / "validation-report.json").write_text(json.dumps({"pluginReports": plugins}))
    entry = {"type": "aws:cdk:acknowledged-rules", "data": dict.fromkeys(acknowledged, "a reason")}
    (folder / "Stack.metadata.json").write_text(json.dumps({"/Stack/Bucket": [entry]}))
    return folder


def plugin(*rules: str, suppressed: tuple[str, ...] = (), **changes: Any) -> dict[str, Any]:
    violations = [
        {
            "ruleName": each,
            "description": "what is wrong",
            "violatingConstructs": [{"constructPath": "Stack/Bucket"}],
        }
        for each in rules
    ]
    used = [{"acknowledgedAt": "Stack/Bucket", "acknowledgedId": each} for each in suppressed]
    return {
        "pluginName": "AwsSolutions",
        "conclusion": "failure" if rules else "success",
        "violations": violations,
        "suppressedViolations": used,
    } | changes


def test_a_finding_that_nobody_acknowledged_fails_and_says_where_and_in_which_app(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([report(tmp_path, plugin("AwsSolutions-S1"))]) == 1
    said = capsys.readouterr().err
    for each in (
        "Stack/Bucket\n",
        "AwsSolutions-S1: what is wrong",
        f"in: {FOLDER}",
        "acknowledge(construct",
    ):
        assert each in said


def test_an_acknowledged_finding_passes(tmp_path: Path) -> None:
    rule = "AwsSolutions::AwsSolutions-S1"
    assert main([report(tmp_path, plugin(suppressed=(rule,)), acknowledged=(rule,))]) == 0


def test_a_warning_of_cdks_own_validation_is_a_finding(tmp_path: Path) -> None:
    """It would not fail a deploy; here it does."""
    warned = plugin("W2508", pluginName="CloudFormation Validate", conclusion="success")
    assert main([report(tmp_path, warned)]) == 1


def test_rules_that_could_not_run_fail(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([report(tmp_path, plugin(conclusion="failure", metadata={"error": "out of memory"}))]) == 1
    assert "out of memory" in capsys.readouterr().err


def test_an_app_without_a_report_is_no_app_without_findings(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        main([tmp_path])


def test_what_the_app_says_of_flags_is_no_finding(tmp_path: Path) -> None:
    assert main([report(tmp_path, plugin("training-cluster:spot", pluginName="Construct Annotations"))]) == 0


def test_an_acknowledgement_of_nothing_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([report(tmp_path, plugin(), acknowledged=("AwsSolutions::AwsSolutions-S1",))]) == 1
    assert "AwsSolutions::AwsSolutions-S1: is acknowledged, but no app has it" in capsys.readouterr().err


def test_what_cdk_acknowledges_itself_need_not_be_found(tmp_path: Path) -> None:
    assert main([report(tmp_path, plugin(), acknowledged=("CloudFormation-Validate::W3010",))]) == 0


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


def test_the_rules_run_and_only_what_is_acknowledged_is_left_out(app: cdk.App) -> None:
    stack = cdk.Stack(app, "Stack")
    acknowledge(s3.Bucket(stack, "Bucket"), "AwsSolutions-S1", "a test")
    s3.Bucket(stack, "Other", enforce_ssl=True)
    assert findings(app) == ["AwsSolutions-S1", "AwsSolutions-S10"]


def test_a_wildcard_is_acknowledged_by_what_it_is_and_another_one_is_found(app: cdk.App) -> None:
    """Also when it has the name of another stack's export in it, which is not known when it is written."""
    bucket = s3.Bucket(cdk.Stack(app, "Data"), "Bucket", enforce_ssl=True, server_access_logs_prefix="logs/")
    stack = cdk.Stack(app, "Stack")
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    queues = f"arn:{cdk.Aws.PARTITION}:sqs:{cdk.Aws.REGION}:{cdk.Aws.ACCOUNT_ID}:jobs-*"
    resources = [bucket.arn_for_objects("*"), queues, "*"]
    role.add_to_policy(iam.PolicyStatement(actions=["s3:GetObject"], resources=resources))
    acknowledge_wildcards(role, resources[:2], "a test")
    assert findings(app) == ["AwsSolutions-IAM5[Resource::*]"]


@pytest.mark.slow
def test_no_app_has_a_finding_without_a_reason_and_no_reason_is_without_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make check` does so for every family."""
    apps = {"p4d": {"family": "p4d"}, **OTHERS}
    for name, flags in apps.items():
        synth(tmp_path, name, flags)
    assert main([tmp_path / name for name in apps]) == 0, capsys.readouterr().err
