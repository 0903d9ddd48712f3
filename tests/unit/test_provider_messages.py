"""What a person reads in CloudFormation when the provider refuses or fails."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

PROVIDER = Path(__file__).resolve().parents[2] / "assets" / "cluster_provider"


@pytest.fixture(scope="module")
def messages() -> ModuleType:
    spec = importlib.util.spec_from_file_location("provider_messages", PROVIDER / "messages.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_errors_come_before_warnings(messages: ModuleType) -> None:
    text = messages.refusal(
        {
            "message": "Invalid cluster configuration.",
            "configuration_validation_errors": [
                {"level": "WARNING", "type": "B", "message": "maybe"},
                {"level": "ERROR", "type": "A", "message": "no"},
            ],
        }
    )
    assert text == "Invalid cluster configuration. | ERROR A: no | WARNING B: maybe"


def test_a_refused_change_names_the_parameter_and_both_values(messages: ModuleType) -> None:
    change = {
        "parameter": "HeadNode.InstanceType",
        "current_value": "a",
        "requested_value": "b",
        "message": "no",
    }
    assert "HeadNode.InstanceType: a -> b: no" in messages.refusal(
        {"message": "Update failure", "update_validation_errors": [change]}
    )


def test_a_failed_cluster_says_why_and_what_shows_more(messages: ModuleType) -> None:
    failures = [{"failureCode": "HeadNodeBootstrapFailure", "failureReason": "the script failed"}]
    text = messages.failure("training", "CREATE_FAILED", failures, ["Subnet: no address is free"])
    assert text.startswith("Cluster training is CREATE_FAILED | HeadNodeBootstrapFailure: the script failed")
    assert "pcluster get-cluster-stack-events --cluster-name training" in text
    assert text.endswith("Subnet: no address is free")


@pytest.mark.parametrize("character", ["x", "é", "集", '"', "\n"])
def test_no_message_is_longer_than_cloudformation_takes(messages: ModuleType, character: str) -> None:
    text = messages.refusal({"message": character * 9000})
    assert len(json.dumps(text)) <= messages.MAX_REASON_BYTES
    assert text.endswith("all of it)")
