"""Saves of more than 30 s, Slurm's own KillWait: job.slurm on a real Slurm with the cluster's KillWait."""

import json
import subprocess
from collections.abc import Iterator

import pytest

from tests.slow.assets.training.tiny import tiny_on_slurm
from tests.slow.assets.training.training import Training, wait_until

pytestmark = pytest.mark.slow

SAVE_S = 34
# At a time limit of a minute SIGTERM comes up to a minute before, and SIGKILL would come 30 s after.
TIMED_SAVE_S = 70
# A node each, so that two jobs save at the same time. No checkpoint but that of a stop.
ONE_NODE = "--nodes=1"
SETTINGS = {"STOP_SAVE_S": str(SAVE_S), "CHECKPOINT_EVERY": "1000", "MAX_STEPS": "1000"}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with tiny_on_slurm(tmp_path_factory.mktemp("saves")) as training:
        yield training


def saved_step(training: Training, run: str, *, save_s: int = SAVE_S) -> int:
    """The step of the run's only checkpoint, which took as long as the disk, and is that of its last row."""
    (checkpoint,) = training.checkpoints(run).glob("step-*")
    label = json.loads((checkpoint / "checkpoint.json").read_text())
    assert label["seconds"] >= save_s
    return int(label["step"])


def test_a_save_of_more_than_30_s_survives_scancel_a_time_limit_and_a_requeue(training: Training) -> None:
    slower = SETTINGS | {"STOP_SAVE_S": str(TIMED_SAVE_S)}
    timed = training.submit("timed", ONE_NODE, "--time=1", "--signal=TERM@1", **slower)
    cancelled = training.submit("cancelled", ONE_NODE, **SETTINGS)
    training.wait_for_step(cancelled, "cancelled", 3)
    training.slurm.cancel(cancelled)
    training.wait(cancelled, state="CANCELLED")
    wait_until(lambda: " and saved" in training.output(cancelled), timeout_s=120, what="no save")
    at = saved_step(training, "cancelled")
    assert f"stopped at step {at} and saved" in training.output(cancelled)

    requeued = training.submit("requeued", ONE_NODE, **SETTINGS)
    training.wait_for_step(requeued, "requeued", 3)
    subprocess.run(["scontrol", "requeue", str(requeued)], env=training.slurm.client_env(), check=True)

    training.wait(timed, state="TIMEOUT")
    wait_until(lambda: " and saved" in training.output(timed), timeout_s=120, what="no save")
    assert f"stopped at step {saved_step(training, 'timed', save_s=TIMED_SAVE_S)} and" in training.output(
        timed
    )

    wait_until(lambda: "restart 1" in training.output(requeued), timeout_s=180, what="not started again")
    at = saved_step(training, "requeued")
    training.wait_for_step(requeued, "requeued", at + 1)
    assert f"training from step {at}" in training.output(requeued)
    training.slurm.cancel(requeued)
    training.wait(requeued, state="CANCELLED")
