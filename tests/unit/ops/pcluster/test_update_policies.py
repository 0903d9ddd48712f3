"""ParallelCluster's update policies, asked in its own environment."""

from pathlib import Path

import pytest

from ops.pcluster.update_policies import ask_library
from ops.usage import OpsError


def test_a_missing_library_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ops.pcluster.update_policies.PCLUSTER_PYTHON", tmp_path / "none")
    with pytest.raises(OpsError, match="make setup"):
        ask_library([({}, {})])
