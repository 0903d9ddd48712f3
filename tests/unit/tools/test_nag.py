"""cdk-nag and CDK's validation of templates: no finding without a reason, no reason without a finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tools.nag import main

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
    assert (
        "AwsSolutions::AwsSolutions-S1: acknowledged, but no app has this finding" in capsys.readouterr().err
    )


def test_what_cdk_acknowledges_itself_need_not_be_found(tmp_path: Path) -> None:
    assert main([report(tmp_path, plugin(), acknowledged=("CloudFormation-Validate::W3010",))]) == 0
