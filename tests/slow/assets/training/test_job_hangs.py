"""A rank that hangs: job.slurm ends the job within the limit, with stacks, and the run goes on."""

import os
import re
import signal
from collections.abc import Iterator

import pytest

from tests.slow.assets.training.tiny import let_go, tiny_on_slurm
from tests.slow.assets.training.training import NODES, Training

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with tiny_on_slurm(tmp_path_factory.mktemp("hangs")) as training:
        yield training


@pytest.mark.parametrize("launcher", ["torchrun", "srun"])
def test_a_stopped_rank_ends_the_job_with_stacks_and_the_run_goes_on(
    training: Training, launcher: str
) -> None:
    run = f"stopped-{launcher}"
    job_id = training.submit(run, HANG_TIMEOUT_S="12", MAX_STEPS="12", HOLD_AT="6", LAUNCHER=launcher)
    training.wait_for_step(job_id, run, 5)
    os.kill(int((training.run_dir(run) / "pid-1").read_text()), signal.SIGSTOP)
    let_go(training, run)
    said = training.wait(job_id, state="COMPLETED")
    found = re.search(r"rank 1 on train-dy-p4d-2 made no step for (\d+) s: it did not answer a signal", said)
    assert found, said
    assert 12 <= int(found[1]) < 60
    assert re.search(r"failed \(rank 1 on train-dy-p4d-2 made .*\); continues from step", said), said
    assert [row["step"] for row in training.metrics(run)] == list(range(1, 13))
    stacks = training.run_dir(run) / "stacks" / f"{job_id}-0"
    assert "in meet" in (stacks / NODES[0] / "rank-0.txt").read_text()
    assert "File" not in (stacks / NODES[1] / "rank-1.txt").read_text()


@pytest.mark.parametrize("launcher", ["torchrun", "srun"])
def test_ranks_that_do_not_notice_a_dead_one_are_ended_and_the_run_goes_on(
    training: Training, launcher: str
) -> None:
    """NCCL over EFA may wait for a dead peer until its timeout, and Slurm until KillWait."""
    run = f"dead-{launcher}"
    job_id = training.submit(
        run, DEAF="1", AFTER_FAILURE_S="5", MAX_STEPS="12", HOLD_AT="6", LAUNCHER=launcher
    )
    training.wait_for_step(job_id, run, 5)
    os.kill(int((training.run_dir(run) / "pid-1").read_text()), signal.SIGKILL)
    let_go(training, run)
    said = training.wait(job_id, state="COMPLETED")
    assert re.search(r"failed \(train-dy-p4d-2: exit code \d+\); continues from step", said), said
    assert [row["step"] for row in training.metrics(run)] == list(range(1, 13))


def test_a_limit_that_is_no_number_is_refused(training: Training) -> None:
    said = training.wait(training.submit("wrong", HANG_TIMEOUT_S="8m"), state="FAILED")
    assert "HANG_TIMEOUT_S is '8m', which is not a number." in said
