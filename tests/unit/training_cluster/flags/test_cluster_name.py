"""cluster_name: no two names that AWS or ParallelCluster take for one."""

import subprocess

import pytest

from training_cluster.paths import PCLUSTER_PYTHON
from training_cluster.problems import ConfigurationError
from training_cluster.rules.context import read_settings


def _refusal(name: str) -> str:
    with pytest.raises(ConfigurationError) as raised:
        read_settings({"cluster_name": name})
    return str(raised.value)


def test_names_in_upper_case_are_refused() -> None:
    """IAM and the private zone ignore case."""
    said = _refusal("Training")
    assert "ignore case" in said
    assert "-c cluster_name=my-team" in said


@pytest.mark.parametrize("name", ["slurm-x", "slurm-slurm-x"])
def test_a_name_with_another_clusters_tables_is_refused(name: str) -> None:
    said = _refusal(name)
    assert f"parallelcluster-{name} is also a table of the cluster {name.removeprefix('slurm-')}" in said


def test_other_names_stay_allowed() -> None:
    for name in ("slurm", "slurmy", "a-slurm-x", "training-2"):
        assert read_settings({"cluster_name": name}).cluster_name == name


def test_parallelcluster_still_names_its_tables_so() -> None:
    """The reason of the refusal, in the library itself."""
    ask = (
        "from pcluster.constants import PCLUSTER_DYNAMODB_PREFIX as a, PCLUSTER_SLURM_DYNAMODB_PREFIX as b\n"
        "assert a + 'slurm-x' == b + 'x', (a, b)"
    )
    subprocess.run([PCLUSTER_PYTHON, "-c", ask], check=True)
