"""The program by which a kept rehearsal follows its deploys."""

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast
from unittest.mock import Mock

import pytest

from rehearsal import head_node
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_slurm import RunningSlurm, SlurmError
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


class Slurm:
    """Records the order of what happens to a Slurm."""

    def __init__(self, events: list[str], *, refuses: bool = False) -> None:
        self._events, self._refuses = events, refuses

    @contextlib.contextmanager
    def updated(self, _partitions: object) -> Iterator[None]:
        if self._refuses:
            raise SlurmError("slurmctld ended")
        self._events.append("slurm.conf")
        try:
            yield
        except BaseException:
            self._events.append("previous slurm.conf")
            raise


@pytest.mark.parametrize(
    ("refuses", "fails", "wanted"),
    [
        (False, False, ["slurm.conf", "OnNodeUpdated"]),
        (False, True, ["slurm.conf", "OnNodeUpdated", "previous slurm.conf"]),
        (True, False, []),
    ],
)
def test_an_update_changes_slurm_first_and_a_failed_script_brings_its_configuration_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refuses: bool, fails: bool, wanted: list[str]
) -> None:
    events: list[str] = []
    workspace = Workspace(root=tmp_path)
    workspace.node.mkdir()
    config = workspace.node / "cluster-config.yaml"
    config.write_text("previous")
    cluster = Mock(config_text="new")

    def run(_: object, action: object, **__: object) -> None:
        assert action is cluster.head_node_update_action
        config.write_text(cluster.config_text)
        events.append("OnNodeUpdated")
        if fails:
            raise RehearsalError("step 71 failed")

    monkeypatch.setattr(head_node, "run_node_actions", run)
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    slurm = cast(RunningSlurm, Slurm(events, refuses=refuses))
    expected = pytest.raises(RehearsalError) if fails or refuses else contextlib.nullcontext()
    with expected:
        head_node.update(cluster, slurm, address=address, workspace=workspace)
    assert events == wanted
    assert config.read_text() == ("previous" if fails or refuses else "new")
