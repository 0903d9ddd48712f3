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
    assert f"exit code 1); goes on from step {at}, restart 1 of 3; queued again" in said
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
    assert f": going on from {before}\n" in said
    assert starts(training, "torn")[1] == ("0", "4")
    assert steps(training, "torn") == [1, *range(3, 9)]
    assert losses(training, "torn")[1:] == losses(training, "whole")[2:]
    assert "metrics.jsonl: 1 damaged rows skipped" in said
    assert "restarts: 1, 1 damaged rows skipped" in said


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


def test_a_job_that_got_on_to_no_checkpoint_is_not_started_again(training: Training) -> None:
    said = training.wait(training.submit("early", DIES_AFTER="1"), state="FAILED")
    assert (
        "the training failed (train-dy-p4d-2: exit code 1); not started again, since no checkpoint was"
        in said
    )
    again = f"TRAINING_SHARED={training.shared} RUN_NAME=early sbatch --nodes 2"
    assert f"go on with it by hand: {again}" in said
    assert starts(training, "early") == [("0", "0")]


def test_a_job_starts_again_as_often_as_it_may_and_no_more(training: Training) -> None:
    env = {"DIES_AFTER": "3", "DEATHS": "9", "MAX_RESTARTS": "1"}
    said = training.wait(training.submit("mortal", **env), state="FAILED")
    assert "goes on from step 2, restart 1 of 1; queued again" in said
    assert "not started again, since MAX_RESTARTS is 1, and it was restarted so often" in said
    said = training.wait(training.submit("mortal", **env | {"MAX_RESTARTS": "0"}), state="FAILED")
    assert "not started again, since MAX_RESTARTS is 0" in said


def test_a_rank_that_fails_is_not_taken_for_a_stop_though_the_others_save(
    training: Training, whole_run: str
) -> None:
    """Slurm sends SIGTERM to the ranks that are left: as when it asks the job to stop."""
    said = training.run("alone", ALONE="1", DIES_AFTER="3")
    assert "restart 1 of 3; queued again" in said
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


def test_a_lost_node_and_the_job_starts_on_another_and_goes_on(training: Training, whole_run: str) -> None:
    job_id = training.submit("lost", HOLD_AT="6")
    training.wait_for_step(job_id, "lost", 5)
    lose_node(training, NODES[1])
    let_go(training, "lost")
    get_node_back(training, NODES[1], job_id)
    training.wait(job_id, state="COMPLETED")
    assert [count for count, _ in starts(training, "lost")] == ["0", "1"]
    assert losses(training, "lost") == losses(training, "whole")


def test_a_lost_node_before_a_new_checkpoint_and_the_job_is_not_started_for_ever(training: Training) -> None:
    job_id = training.submit("stuck", CHECKPOINT_EVERY="1000", HOLD_AT="4")
    training.wait_for_step(job_id, "stuck", 3)
    lose_node(training, NODES[1])
    let_go(training, "stuck")
    get_node_back(training, NODES[1], job_id)
    said = training.wait(job_id, state="FAILED")
    assert "queued again (a lost node, or scontrol requeue), and no checkpoint was written since the" in said
    assert "RUN_NAME=stuck sbatch --nodes 2" in said
    assert len(starts(training, "stuck")) == 1
