"""A workload as `trainctl new-workload` makes it, on two nodes of a real Slurm on this machine."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.slow.assets.training.training import Training, check_that_divergence_ends_a_run, training_on_slurm
from training_cluster.paths import ROOT

# Minutes, most of them the start of programs: make test-all.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]

NAME = "byte-model"
STEPS, SAVED_EVERY = 60, 10
SETTINGS = {"MAX_STEPS": str(STEPS), "CHECKPOINT_EVERY": str(SAVED_EVERY), "WARMUP_STEPS": "2"}
SETTINGS |= {"EVAL_SEQUENCES": "1"}  # one rank of two validates nothing


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with training_on_slurm(tmp_path_factory.mktemp(NAME), workload=NAME, env=SETTINGS) as training:
        into = str(training.shared / "training")
        subprocess.run(
            [sys.executable, "-m", "ops", "new-workload", NAME, "--into", into], cwd=ROOT, check=True
        )
        yield training


@pytest.fixture(scope="module")
def whole_run(training: Training) -> list[dict[str, Any]]:
    """The metrics of a run that nothing interrupts."""
    training.run("whole")
    return training.metrics("whole")


def test_two_nodes_train_as_one_world(training: Training, whole_run: list[dict[str, Any]]) -> None:
    assert [row["step"] for row in whole_run] == list(range(1, STEPS + 1))
    assert {row["world_size"] for row in whole_run} == {2}
    assert whole_run[-1]["loss"] < whole_run[0]["loss"] - 0.5
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"


@pytest.mark.parametrize("case", ["kill", "stop", "truncate", "resize"])
def test_a_disturbed_run_has_equal_losses(
    training: Training, whole_run: list[dict[str, Any]], case: str
) -> None:
    row = training.proof().run(case)
    assert (row.problem, row.losses) == ("", "equal")


def test_a_run_that_diverges_ends(training: Training) -> None:
    check_that_divergence_ends_a_run(training)
