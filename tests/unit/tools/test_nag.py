"""cdk-nag and CDK's validation of templates: no finding without a reason, no reason without a finding."""

import json
from pathlib import Path
from typing import Any

import pytest

from tools.nag import main

RULE = "AwsSolutions::AwsSolutions-S1"
FINDING = {
    "ruleName": "AwsSolutions-S1",
    "description": "what is wrong",
    "violatingConstructs": [{"constructPath": "Stack/Bucket"}],
}
USED = {"acknowledgedAt": "Stack/Bucket", "acknowledgedId": RULE}


def report(folder: Path, acknowledged: str, **plugin: Any) -> Path:
    """Write an app's folder with the report of one plugin, as synth does."""
    content = {"pluginName": "AwsSolutions", "conclusion": "success", "violations": [], **plugin}
    (folder / "validation-report.json").write_text(json.dumps({"pluginReports": [content]}))
    entry = {"type": "aws:cdk:acknowledged-rules", "data": {acknowledged: "a reason"}}
    (folder / "Stack.metadata.json").write_text(json.dumps({"/Stack/Bucket": [entry]}))
    return folder


def test_findings_need_reasons_and_reasons_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for plugin, acknowledged, problem in (
        ({"violations": [FINDING]}, "", "Stack/Bucket\n  AwsSolutions-S1: what is wrong\n  in: "),
        ({"conclusion": "failure", "metadata": {"error": "out of memory"}}, "", "out of memory"),
        ({}, RULE, f"{RULE}: acknowledged, but no app has this finding"),
        ({"suppressedViolations": [USED]}, RULE, ""),
        ({"violations": [FINDING | {"ruleName": "training-cluster:spot"}]}, "", ""),
        # CDK acknowledges some of its own rules.
        ({}, "CloudFormation-Validate::W3010", ""),
    ):
        assert main([report(tmp_path, acknowledged, **plugin)]) == bool(problem)
        assert problem in capsys.readouterr().err
