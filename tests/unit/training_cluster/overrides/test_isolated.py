"""The key by which ParallelCluster runs without Route 53 marks a network without internet."""

import pytest

from tests.unit.training_cluster.overrides.conftest import Write
from training_cluster.overrides.isolated import is_isolated
from training_cluster.rules.context import read_settings


@pytest.mark.parametrize(
    ("text", "isolated"),
    [
        ("Scheduling: {SlurmSettings: {Dns: {DisableManagedDns: true, UseEc2Hostnames: true}}}", True),
        ("Scheduling: {SlurmSettings: {Dns: {DisableManagedDns: false}}}", False),
        ("Monitoring: {DetailedMonitoring: true}", False),
    ],
)
def test_the_key_decides(text: str, isolated: bool, write: Write) -> None:
    assert is_isolated(read_settings({"overrides": write(text)})) is isolated
