"""A job whose ranks, nodes, disk or daemons fail: job.slurm on a real Slurm, tiny trainer."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator

import pytest

from tests.slow.assets.training.tiny import let_go, losses, starts, steps, tiny_on_slurm
from tests.slow.assets.training.training import NODES, Training, marked, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("tiny")
    # Nodes see what is mounted before they start.
    small = folder / "fsx" / "checkpoints" / "tiny" / "full"
    small.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    is_small = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    with tiny_on_slurm(folder) as training:
        yield training
    if is_small:
        subprocess.run(["umount", "--lazy", small], check=True)


@pytest.fixture(scope="module")
def whole_run(training: Training) -> str:
    """Output of a run that nothing interrupts; the losses of others are compared with it."""
    return training.run("whole")


def test_a_killed_rank_and_the_job_starts_again_by_itself_and_goes_on(
    training: Training, whole_run: str
) -> None:
    job_id = training.submit("killed", HOLD_AT="6")
    training.wait_for_step(job_id, "killed", 5)
    os.kill(int((training.run_dir("killed") / "pid-1").read_text()), signal.SIGKILL)
    let_go(training, "killed")
    said = training.wait(job_id, state="COMPLETED")
    at = int(starts(training, "killed")[1][1])
    assert f"exit code 1); continues from step {at}; queued again" in said
    assert f"training from step {at}" in said
    assert starts(training, "killed") == [("0", "0"), ("1", str(at))]
    assert steps(training, "killed") == list(range(1, 9))
    assert losses(training, "killed") == losses(training, "whole")
    assert "world size 2, restarts: 1" in said


def test_a_truncated_newest_checkpoint_and_a_hole_in_the_metrics_cost_two_steps_and_no_loss_differs(
    training: Training, whole_run: str
) -> None:
    training.run("torn", MAX_STEPS="6")
    newest, before = (training.checkpoints("torn") / f"step-{step:06d}" for step in (6, 4))
    (newest / "state.json").write_text("")
    metrics = training.run_dir("torn") / "metrics.jsonl"
    lines = metrics.read_bytes().splitlines(keepends=True)
    metrics.write_bytes(b"".join([lines[0], bytes(len(lines[1]) - 1), b"\n", *lines[2:]]))
    said = training.run("torn")
    assert f"{newest} is incomplete (state.json has 0 bytes instead of " in said
    assert f": continuing from {before}\n" in said
    assert starts(training, "torn")[1] == ("0", "4")
    assert steps(training, "torn") == [1, *range(3, 9)]
    assert losses(training, "torn")[1:] == losses(training, "whole")[2:]
    assert "metrics.jsonl: 1 damaged rows skipped" in said
    assert "restarts: 1, 1 damaged rows skipped" in said


def test_changed_bytes_are_found_by_all_nodes(training: Training, whole_run: str) -> None:
    training.run("changed", MAX_STEPS="6")
    newest = training.checkpoints("changed") / "step-000006"
    state = (newest / "state.json").read_bytes()
    (newest / "state.json").write_bytes(state.replace(b"6", b"5"))
    said = training.run("changed")
    assert f"{newest} is incomplete (state.json has other bytes than when it was saved" in said
    assert "this node alone" not in said
    assert starts(training, "changed")[1] == ("0", "4")
    assert losses(training, "changed") == losses(training, "whole")


@pytest.mark.root
def test_a_full_disk_at_a_save_is_said_and_with_space_the_run_goes_on(
    training: Training, whole_run: str
) -> None:
    small = training.checkpoints("full")
    if not small.is_mount():
        pytest.skip("this machine refuses to mount a small file system")
    job_id = training.submit("full", MAX_RESTARTS="0", HOLD_AT="4")
    training.wait_for_step(job_id, "full", 3)
    with contextlib.suppress(OSError), (small / "other data").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    let_go(training, "full")
    said = training.wait(job_id, state="FAILED")
    assert f"a checkpoint could not be written into {small}, which has 0.0 GB free" in said
    assert "No space left on device): fix that, and submit again with the same RUN_NAME." in said
    (small / "other data").unlink()
    training.run("full")
    assert int(starts(training, "full")[1][1]) >= 2
    assert losses(training, "full") == losses(training, "whole")


def test_a_killed_controller_that_starts_again_does_not_interrupt_the_training(
    training: Training, whole_run: str
) -> None:
    job_id = training.submit("controller", STEP_S="2", HOLD_AT="5")
    # slurmctld saves its state within 5 s; killed earlier, it has forgotten that the job runs.
    training.wait_for_step(job_id, "controller", 4)
    begin_again("slurmctld", lambda argv: [word for word in argv if word != "-c"])
    let_go(training, "controller")
    training.wait(job_id, state="COMPLETED")
    assert starts(training, "controller") == [("0", "0")]
    assert losses(training, "controller") == losses(training, "whole")


def test_a_killed_slurmd_that_starts_again_does_not_interrupt_the_training(
    training: Training, whole_run: str
) -> None:
    job_id = training.submit("slurmd", HOLD_AT="3")
    training.wait_for_step(job_id, "slurmd", 2)
    begin_again("slurmd", lambda argv: argv, NODES[1])
    let_go(training, "slurmd")
    training.wait(job_id, state="COMPLETED")
    assert starts(training, "slurmd") == [("0", "0")]
    assert losses(training, "slurmd") == losses(training, "whole")


def begin_again(name: str, argv_of: Callable[[list[str]], list[str]], node: str = "") -> None:
    """Kill a daemon, and start it again as the service manager of a node does."""
    (daemon,) = (
        process
        for process in marked("tiny")
        if process.name() == name and (not node or node in process.cmdline())
    )
    argv, env, folder = daemon.cmdline(), daemon.environ(), daemon.cwd()
    daemon.kill()
    daemon.wait(10)
    subprocess.Popen(
        argv_of(argv),
        env=env,
        cwd=folder,
        start_new_session=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def test_ranks_that_die_without_checkpoint_end_the_job(training: Training) -> None:
    job_id = training.submit("early", DIES_AFTER="1", DEATHS="9", MAX_RESTARTS="1")
    output = training.wait(job_id, state="FAILED")
    failed = "the training failed (train-dy-p4d-2: exit code 1)"
    assert f"{failed}; continues from step 0, restart 1 of 1 without a new checkpoint; queued again" in output
    assert f"{failed}; not started again, since MAX_RESTARTS is 1, and 2 starts failed" in output
    again = f"TRAINING_SHARED={training.shared} RUN_NAME=early sbatch --nodes 2"
    assert f"continue it by hand: {again}" in output
    assert starts(training, "early") == [("0", "0"), ("1", "0")]


def test_an_array_s_last_task_restarts_alone(training: Training) -> None:
    """Slurm takes the id of the last task, which is the array's own, for all tasks."""
    array = training.submit("", "--nodes=1", "--array=0-1", HOLD_AT="6")
    last, other = f"job-{array}", f"job-{array + 1}"
    for run in (last, other):
        training.wait_for_step(array, run, 5)
    os.kill(int((training.run_dir(last) / "pid-0").read_text()), signal.SIGKILL)
    for run, expected in ((last, 2), (other, 1)):
        let_go(training, run)
        outcome = training.run_dir(run) / "outcome"
        with training.ended_if_late(array):
            wait_until(outcome.is_file, timeout_s=180, what=f"{run} does not finish")
        assert len(starts(training, run)) == expected
        assert outcome.read_text() == "finished\n"


def test_a_rank_that_fails_is_not_taken_for_a_stop_though_the_others_save(
    training: Training, whole_run: str
) -> None:
    """Slurm sends SIGTERM to the ranks that are left: as when it asks the job to stop."""
    said = training.run("alone", ALONE="1", DIES_AFTER="3")
    assert "the training failed" in said
    assert losses(training, "alone") == losses(training, "whole")


def lose_node(training: Training, name: str) -> None:
    """Kill all of a node at once, like a machine that is switched off; Slurm finds that it is gone."""
    running = marked("tiny")
    (slurmd,) = (process for process in running if process.name() == "slurmd" and name in process.cmdline())
    tasks = [process for process in running if process.environ().get("SLURMD_NODENAME") == name]
    above = [process.parent() for process in tasks]
    steps = [process for process in above if process and process.name().startswith("slurmstepd")]
    for process in (slurmd, *steps, *tasks):
        process.kill()
    scontrol(training, "update", f"nodename={name}", "state=down", "reason=lost")


def scontrol(training: Training, *words: str) -> None:
    subprocess.run(["scontrol", *words], env=training.slurm.client_env(), check=True)


def get_node_back(training: Training, name: str, job_id: int) -> None:
    """ParallelCluster powers the lost node down, and another instance takes its name."""
    wait_until(lambda: training.slurm.job_state(job_id) == "PENDING", timeout_s=180, what="not queued again")
    scontrol(training, "update", f"nodename={name}", "state=power_down_force")
    states = training.slurm.node_states
    wait_until(lambda: not states()[name].startswith("down"), timeout_s=180, what=f"{name} stays down")


def test_a_node_loss_before_a_checkpoint_restarts(training: Training, whole_run: str) -> None:
    job_id = training.submit("lost", CHECKPOINT_EVERY="1000", HOLD_AT="6")
    training.wait_for_step(job_id, "lost", 5)
    lose_node(training, NODES[1])
    let_go(training, "lost")
    get_node_back(training, NODES[1], job_id)
    training.wait(job_id, state="COMPLETED")
    assert starts(training, "lost") == [("0", "0"), ("1", "0")]
    assert losses(training, "lost") == losses(training, "whole")
