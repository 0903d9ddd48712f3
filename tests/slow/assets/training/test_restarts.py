"""A job whose ranks, nodes, disk or daemons fail: job.slurm on a real Slurm, tiny trainer."""

import contextlib
import os
import re
import signal
from collections.abc import Iterator

import psutil
import pytest

from ops.report.source import read_folder
from tests.slow.assets.training.tiny import (
    begin_again,
    daemon,
    let_go,
    losses,
    node_of,
    restarts,
    scontrol,
    starts,
    steps,
    switch_off,
    tiny_on_slurm,
)
from tests.slow.assets.training.training import Training, marked, wait_until
from tests.unit.assets.training.webhook import SECRET, Webhook, webhook_server

pytestmark = pytest.mark.slow

NOTIFIED = {"NOTIFY": "webhook"}
HANGS = {"HANG_TIMEOUT_S": "12", "DIES_BY": "SIGSTOP", "DIES_AFTER": "5"}
# By run, the settings of jobs that need no hand: they run side by side, and tests wait for their ends.
JOBS = {
    "whole": {},
    # As if submitted from a step of one task, whose variables sbatch passes on.
    "killed": {"DIES_AFTER": "5", "SLURM_NTASKS": "1", **NOTIFIED},
    "torn": {"DIES_AFTER": "5", "TORN_AT": "4"},
    "hangs-torchrun": HANGS,
    "hangs-srun": HANGS | {"LAUNCHER": "srun"},
    "early": {"DIES_AFTER": "1", "DEATHS": "9", "MAX_RESTARTS": "2", **NOTIFIED},
}


@pytest.fixture(scope="module")
def webhook() -> Iterator[Webhook]:
    with webhook_server() as running:
        yield running


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory, webhook: Webhook) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("tiny")
    file = folder / "webhook"
    file.touch(mode=0o600)
    file.write_text(webhook.address)
    with tiny_on_slurm(folder, NOTIFY_FILE=str(file)) as training:
        yield training


@pytest.fixture(scope="module", autouse=True)
def jobs(training: Training) -> dict[str, int]:
    """Submit all jobs that need no hand, and return their ids; `whole` has ended."""
    submitted = {run: training.submit(run, **settings) for run, settings in JOBS.items()}
    training.wait(submitted["whole"], state="COMPLETED")
    return submitted


def events(webhook: Webhook, job_id: int) -> list[str]:
    """Return the events of a job of which the user is notified."""
    return [each.partition("]")[0].strip("[") for each in webhook.got if f"] job {job_id} (" in each]


def assert_whole(training: Training, *runs: str) -> None:
    """Assert that runs have each step once, with the losses of a run that nothing interrupts."""
    for run in runs:
        assert losses(training, run) == losses(training, "whole"), run
        assert steps(training, run) == list(range(1, 9)), run


def test_a_killed_preparation_is_finished_later(training: Training, webhook: Webhook) -> None:
    hold = training.shared / "hold"
    hold.touch()
    job_id = training.submit("unprepared", PREPARE_HOLD=str(hold), **NOTIFIED)
    prepare = str(training.shared / "training" / "tiny" / "prepare.sh")
    wait_until(lambda: bool(running(prepare)), timeout_s=180, what="prepare.sh does not run")
    for pid in running(prepare):
        os.kill(pid, signal.SIGKILL)
    hold.unlink()
    training.wait(job_id, state="FAILED")
    assert (events(webhook, job_id), training.metrics("unprepared")) == (["given up"], [])
    assert any(f"job {job_id} " in said and said.endswith("the preparation failed") for said in webhook.got)
    assert "report" in training.run("unprepared", MAX_STEPS="2")


def running(script: str) -> list[int]:
    """Return the ids of the processes that run a script."""
    found = []
    for process in marked("tiny"):
        with contextlib.suppress(psutil.NoSuchProcess):
            found += [process.pid] if script in process.cmdline() else []
    return found


def test_a_killed_rank_restarts_the_job(training: Training, jobs: dict[str, int], webhook: Webhook) -> None:
    output = training.wait(jobs["killed"], state="COMPLETED")
    at = int(starts(training, "killed")[1][1])
    assert f"exit code 1); continues from step {at}, on the same nodes" in output
    assert f"training from step {at}" in output
    assert starts(training, "killed") == [("0", "0"), ("1", str(at))]
    assert "world size 2, restarts: 1" in output
    assert_whole(training, "killed")
    assert restarts(training, "killed") == ["0", "0"], "Slurm gave the nodes to no other job"
    assert events(webhook, jobs["killed"]) == ["started", "started again", "finished"], output
    assert SECRET not in output


def test_the_checkpoint_before_a_torn_one_is_loaded(training: Training, jobs: dict[str, int]) -> None:
    output = training.wait(jobs["torn"], state="COMPLETED")
    assert [step for _, step in starts(training, "torn")] == ["0", "4", "2"], output
    torn, good = (training.checkpoints("torn") / f"step-{step:06d}" for step in (4, 2))
    assert f"{torn} cannot be loaded (JSONDecodeError: " in output
    assert f"the next start takes {good}, unless you remove {torn}/damaged." in output
    assert_whole(training, "torn")


def test_ranks_without_checkpoint_end_job(training: Training, jobs: dict[str, int], webhook: Webhook) -> None:
    output = training.wait(jobs["early"], state="FAILED")
    failed = r"the training failed \(train-dy-p4d-\d: exit code 1\)"
    again = "continues from step 0, restart {} of 2 without a new checkpoint"
    assert re.search(f"{failed}; {again.format(1)}, on the same nodes", output), output
    assert re.search(f"{failed}; {again.format(2)}; queued again", output), output
    assert re.search(f"{failed}; not started again, since MAX_RESTARTS is 2, and 3 starts failed", output)
    by_hand = f"continue it by hand: TRAINING_SHARED={training.shared} RUN_NAME=early sbatch --nodes 2"
    assert by_hand in output
    assert starts(training, "early") == [("0", "0"), ("1", "0"), ("2", "0")]
    assert restarts(training, "early") == ["0", "0", "1"]
    told = ["started", "started again", "queued again", "started", "given up"]
    assert events(webhook, jobs["early"]) == told


@pytest.mark.parametrize("launcher", ["torchrun", "srun"])
def test_a_stopped_rank_ends_with_stacks(training: Training, jobs: dict[str, int], launcher: str) -> None:
    run = f"hangs-{launcher}"
    output = training.wait(jobs[run], state="COMPLETED")
    found = re.search(r"rank 1 on (\S+) made no step for (\d+) s: it did not answer a signal", output)
    assert found, output
    assert 12 <= int(found[2]) < 60
    assert re.search(rf"the training failed \(rank 1 on {found[1]} made .*\); continues from step", output)
    assert_whole(training, run)
    stacks = {file.name: file for file in (training.run_dir(run) / "stacks" / f"{jobs[run]}-0").glob("*/*")}
    assert "in meet" in stacks["rank-0.txt"].read_text()
    assert stacks["rank-1.txt"].parent.name == found[1]
    assert "File" not in stacks["rank-1.txt"].read_text()


def test_a_spare_replaces_a_lost_node(training: Training) -> None:
    job_id = training.submit("spare", "--nodes=3", SPARES="1", HOLD_AT="6")
    lost = lose_node_of(training, job_id, "spare", rank=1)
    output = training.wait(job_id, state="COMPLETED")
    scontrol(training, "update", f"nodename={lost}", "state=power_down_force")
    at = int(starts(training, "spare")[1][1])
    assert at >= 4
    assert f"lost or unhealthy: {lost}; continues from step {at}" in output
    assert restarts(training, "spare") == ["0", "0"]
    assert_whole(training, "spare")
    run = read_folder(training.run_dir("spare"))
    assert run.goodput
    held_s = int((training.run_dir("spare") / "starts").read_text().split()[7]) + run.starts[-1].seconds
    held_s += (run.starts[-1].time - run.starts[0].time).seconds
    assert run.goodput.paid_s == pytest.approx(3 * held_s, abs=1), "the spare, and the lost node, are paid"
    parts = {name for name, seconds in run.goodput.node_s.items() if seconds >= 0.2}
    assert parts >= {"training", "starting", "restarts", "idle nodes"}, "others may take none"


def test_fewer_nodes_go_on_after_a_loss(training: Training) -> None:
    job_id = training.submit("fewer", "--nodes=3", MIN_NODES="2", HOLD_AT="6")
    lost = lose_node_of(training, job_id, "fewer", rank=1)
    output = training.wait(job_id, state="COMPLETED")
    assert f"lost or unhealthy: {lost}; continues from step " in output
    assert restarts(training, "fewer") == ["0", "0"]
    worlds = [row["world_size"] for row in training.metrics("fewer")]
    assert (worlds[0], worlds[-1]) == (3, 2)
    assert_whole(training, "fewer")
    scontrol(training, "update", f"nodename={lost}", "state=power_down_force")


def test_the_scripts_lost_node_requeues_the_job(training: Training) -> None:
    """Slurm would keep the other nodes without a script until the time limit, and ranks for KillWait."""
    job_id = training.submit("script", WATCH_S="6", HOLD_AT="6", DEAF="1")
    training.wait_for_step(job_id, "script", 5)
    other = psutil.Process(int((training.run_dir("script") / "pid-1").read_text()))
    controller = daemon("slurmctld")
    controller.suspend()
    try:
        lost = lose_node_of(training, job_id, "script", rank=0, is_down=False)
        other.wait(30)  # twice WATCH_S, and two looks; a third for the machine
    finally:
        controller.resume()
    scontrol(training, "update", f"nodename={lost}", "state=down", "reason=lost")
    scontrol(training, "update", f"nodename={lost}", "state=power_down_force")
    output = training.wait(job_id, state="COMPLETED")
    assert f"{lost} gave no sign of life for 8 s; " in output
    assert restarts(training, "script") == ["0", "1"]
    assert_whole(training, "script")


def lose_node_of(training: Training, job_id: int, run: str, *, rank: int, is_down: bool = True) -> str:
    """Lose the node of a rank after step 5, at which the ranks wait; return its name."""
    training.wait_for_step(job_id, run, 5)
    name = node_of(int((training.run_dir(run) / f"pid-{rank}").read_text()))
    switch_off(name)
    if is_down:
        scontrol(training, "update", f"nodename={name}", "state=down", "reason=lost")
    let_go(training, run)
    return name


def test_killed_daemons_do_not_interrupt_the_training(training: Training) -> None:
    job_id = training.submit("daemons", STEP_S="2", HOLD_AT="5")
    # slurmctld saves its state within 5 s; killed earlier, it has forgotten that the job runs.
    training.wait_for_step(job_id, "daemons", 4)
    begin_again(daemon("slurmctld"), lambda argv: [word for word in argv if word != "-c"])
    node = node_of(int((training.run_dir("daemons") / "pid-1").read_text()))
    begin_again(daemon("slurmd", node), lambda argv: argv)
    let_go(training, "daemons")
    training.wait(job_id, state="COMPLETED")
    assert starts(training, "daemons") == [("0", "0")]
    assert_whole(training, "daemons")
