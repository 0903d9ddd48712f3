"""The version of ParallelCluster, read from its one requirement."""

from pathlib import Path

import pytest

from training_cluster.catalog.pcluster_version import read_pcluster_version
from training_cluster.flags.cluster import PCLUSTER_VERSION


def test_an_unclear_requirement_of_the_library_is_refused(tmp_path: Path) -> None:
    pin = f"aws-parallelcluster=={PCLUSTER_VERSION}\n"
    for text in ("", "aws-parallelcluster>=3.16\n", pin + pin):
        (tmp_path / "requirements.txt").write_text(text)
        with pytest.raises(ValueError, match="expected one line"):
            read_pcluster_version(tmp_path / "requirements.txt")
