"""The program by which a kept rehearsal follows its deploys."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rehearsal import head_node
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.problems import RehearsalError
from rehearsal.workspace import Workspace


def test_the_local_aws_is_told_a_command_that_finds_this_module(tmp_path: Path) -> None:
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    head_node.follow_deploys(address, Workspace(root=tmp_path))
    command = json.loads(address.head_node_program.read_text())
    assert command == [sys.executable, "-m", "rehearsal.head_node", str(tmp_path)]


def test_a_failure_is_one_message_and_an_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(event: str, cluster_name: str, *, address: LocalAwsAddress, workspace: Workspace) -> None:
        assert (event, cluster_name, address.port) == ("update", "training", 4566)
        assert address.folder == workspace.aws
        raise RehearsalError("Slurm refuses this")

    monkeypatch.setattr(head_node, "follow", fail)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://localhost:4566")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    assert head_node.main(str(tmp_path), "training", "update") == 1
    assert capsys.readouterr().err == "Slurm refuses this\n"
