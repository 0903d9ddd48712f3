"""The program by which a kept rehearsal follows its deploys: an update whose script fails."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from rehearsal import head_node
from rehearsal.bootstrap import CLUSTER_CONFIG
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.problems import RehearsalError
from rehearsal.workspace import Workspace


def test_a_failed_update_restores_both_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The script runs within RunningSlurm.updated, which restores Slurm's, as a slow test shows."""
    events: list[str] = []

    @contextlib.contextmanager
    def updated(partitions: object) -> Iterator[None]:
        assert partitions is cluster.partitions
        try:
            yield
        except RehearsalError:
            events.append("previous slurm.conf")
            raise

    def run(_: object, action: object, **__: object) -> None:
        assert action is cluster.head_node_update_action
        config.write_text("new")
        events.append("OnNodeUpdated")
        raise RehearsalError("step 71 failed")

    workspace, cluster = Workspace(root=tmp_path), Mock()
    config = workspace.node / CLUSTER_CONFIG
    config.parent.mkdir()
    config.write_text("previous")
    monkeypatch.setattr(head_node, "run_node_actions", run)
    address = LocalAwsAddress(port=4566, folder=tmp_path, access_key="AKIA")
    with pytest.raises(RehearsalError, match="step 71"):
        head_node.update(cluster, Mock(updated=updated), address=address, workspace=workspace)
    assert events == ["OnNodeUpdated", "previous slurm.conf"]
    assert config.read_text() == "previous"
