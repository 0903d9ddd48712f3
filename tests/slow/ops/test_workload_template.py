"""A workload as `trainctl new-workload` makes it, on two nodes of a real Slurm on this machine."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.slow.assets.training.training import (
    Training,
    check_that_divergence_ends_a_run,
    training_on_slurm,
    wait_until,
)
from training_cluster.paths import ROOT

# Minutes, most of them the start of programs: make test-all.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]

NAME = "byte-model"
STEPS, RESUMED_AT = 12, 6
SETTINGS = {"MAX_STEPS": str(STEPS), "CHECKPOINT_EVERY": str(RESUMED_AT), "WARMUP_STEPS": "2"}


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


def losses(rows: list[dict[str, Any]]) -> list[tuple[int, float]]:
    return [(row["step"], row["loss"]) for row in rows]


def test_two_nodes_train_as_one_world(training: Training, whole_run: list[dict[str, Any]]) -> None:
    assert [row["step"] for row in whole_run] == list(range(1, STEPS + 1))
    assert {row["world_size"] for row in whole_run} == {2}
    assert whole_run[-1]["loss"] < whole_run[0]["loss"] - 0.5
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"


def test_a_resumed_run_gives_the_same_losses(training: Training, whole_run: list[dict[str, Any]]) -> None:
    kept = f"step-{RESUMED_AT:06d}"
    shutil.copytree(training.checkpoints("whole") / kept, training.checkpoints("resumed") / kept)
    assert f"resuming from {training.checkpoints('resumed') / kept}" in training.run("resumed")
    assert losses(training.metrics("resumed")) == losses(whole_run[RESUMED_AT:])


def test_a_cancelled_run_saves(training: Training) -> None:
    job_id = training.submit("ended", MAX_STEPS="100000", CHECKPOINT_EVERY="100000")
    wait_until(lambda: len(training.metrics("ended")) >= 3, timeout_s=120, what="no third step")
    training.end(job_id)
    outcome = training.run_dir("ended") / "outcome"
    wait_until(outcome.is_file, timeout_s=60, what="no outcome")
    (saved,) = training.checkpoints("ended").glob("step-*")
    at = int(saved.name.removeprefix("step-"))
    assert outcome.read_text() == f"stopped {at}\n"
    assert (training.checkpoints("ended") / "latest_step").read_text() == f"{at}\n"


def test_a_run_that_diverges_ends(training: Training) -> None:
    check_that_divergence_ends_a_run(training)
