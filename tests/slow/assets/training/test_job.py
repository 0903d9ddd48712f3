"""End of a job whose ranks, nodes or time end early: job.slurm on a real Slurm, tiny trainer."""

import contextlib
import http.server
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import psutil
import pytest

from rehearsal.local_slurm import SlurmError
from tests.slow.assets.training.training import NODES, Training, marked, training_on_slurm, wait_until

pytestmark = pytest.mark.slow

# As every workload's prepare.sh begins.
WITH_REQUIREMENTS = """\
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$here/../environment.sh"
venv="$(environment_of "$here")"
make_environment "$here" "$venv"
"""
TINY = Path(__file__).parent / "tiny_workload"


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("tiny")
    # Nodes see what is mounted before they start.
    small = folder / "fsx" / "checkpoints" / "tiny" / "full"
    small.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(small)]
    is_small = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    env = {"TRAINING_VENVS": str(folder / "venvs")}
    with training_on_slurm(folder, workload="tiny", env=env) as training:
        shutil.copytree(TINY, training.shared / "training" / "tiny")
        yield training
    if is_small:
        subprocess.run(["umount", "--lazy", small], check=True)


def steps(training: Training, run: str) -> list[int]:
    return [row["step"] for row in training.metrics(run)]


def starts(training: Training, run: str) -> list[tuple[str, str]]:
    """Slurm's restart count and the step of each start."""
    lines = (training.run_dir(run) / "starts").read_text().splitlines()
    return [(line.split()[0], line.split()[1]) for line in lines]


def losses(training: Training, run: str) -> list[float]:
    return [row["loss"] for row in training.metrics(run)]


@pytest.fixture(scope="module")
def whole_run(training: Training) -> str:
    """Output of a run that nothing interrupts; the losses of others are compared with it."""
    return training.run("whole")


def test_a_run_that_nothing_interrupts_ends_with_its_report_and_the_published_figure(
    training: Training, whole_run: str
) -> None:
    said = whole_run
    assert steps(training, "whole") == list(range(1, 9))
    assert {row["world_size"] for row in training.metrics("whole")} == {2}
    assert "report: 8 steps, loss 7.7600 -> 6.2699, 500 tokens/s (median)" in said
    assert "world size 2, restarts: 0" in said
    assert "published: the tests' own trainer, p4d, 2 nodes: 66,000 tokens/s" in said
    assert (training.run_dir("whole") / "outcome").read_text() == "finished\n"
    assert starts(training, "whole") == [("0", "0")]
    assert (training.run_dir("whole") / "ends").read_text().endswith(" 0\n")
    (settings,) = training.run_dir("whole").glob("settings-*.env")
    assert "FAMILY=p4d" in settings.read_text()
    assert "MAX_STEPS" not in settings.read_text(), "it was not set"


def test_a_killed_rank_and_the_job_starts_again_by_itself_and_goes_on(
    training: Training, whole_run: str
) -> None:
    job_id = training.submit("killed")
    training.wait_for_step(job_id, "killed", 5)
    os.kill(int((training.run_dir("killed") / "pid-1").read_text()), signal.SIGKILL)
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


def test_a_full_disk_at_a_save_is_said_and_with_space_the_run_goes_on(
    training: Training, whole_run: str
) -> None:
    small = training.checkpoints("full")
    if not small.is_mount():
        pytest.skip("only root can mount a small file system")
    job_id = training.submit("full", MAX_RESTARTS="0")
    training.wait_for_step(job_id, "full", 3)
    with contextlib.suppress(OSError), (small / "other data").open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    said = training.wait(job_id, state="FAILED")
    assert f"a checkpoint could not be written into {small}, which has 0.0 GB free" in said
    assert "No space left on device): fix that, and submit again with the same RUN_NAME." in said
    (small / "other data").unlink()
    training.run("full")
    assert int(starts(training, "full")[1][1]) >= 2
    assert losses(training, "full") == losses(training, "whole")


def test_a_killed_preparation_fails_the_job_and_the_next_one_finishes_it(training: Training) -> None:
    job_id = training.submit("unprepared", PREPARE_S="15")
    prepare = str(training.shared / "training" / "tiny" / "prepare.sh")

    def preparing() -> list[psutil.Process]:
        found = []
        for process in marked("tiny"):
            with contextlib.suppress(psutil.NoSuchProcess):
                found += [process] if prepare in process.cmdline() else []
        return found

    wait_until(lambda: bool(preparing()), timeout_s=60, what="prepare.sh does not run")
    for process in preparing():
        process.kill()
    said = training.wait(job_id, state="FAILED")
    assert "prepare" in said
    assert training.metrics("unprepared") == []
    assert "report" in training.run("unprepared", MAX_STEPS="2")


def test_a_killed_controller_that_starts_again_does_not_interrupt_the_training(
    training: Training, whole_run: str
) -> None:
    job_id = training.submit("controller", STEP_S="2")
    # slurmctld saves its state within 5 s; killed earlier, it has forgotten that the job runs.
    training.wait_for_step(job_id, "controller", 4)
    begin_again("slurmctld", lambda argv: [word for word in argv if word != "-c"])
    training.wait(job_id, state="COMPLETED")
    assert starts(training, "controller") == [("0", "0")]
    assert losses(training, "controller") == losses(training, "whole")


def test_a_killed_slurmd_that_starts_again_does_not_interrupt_the_training(
    training: Training, whole_run: str
) -> None:
    job_id = training.submit("slurmd", STEP_S="1")
    training.wait_for_step(job_id, "slurmd", 2)
    begin_again("slurmd", lambda argv: argv, NODES[1])
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


def test_a_second_job_of_a_run_that_trains_is_refused_and_the_first_goes_on(training: Training) -> None:
    first = training.submit("twice", "--nodes=1", MAX_STEPS="1000")
    training.wait_for_step(first, "twice", 1)
    said = training.wait(training.submit("twice", "--nodes=1"), state="FAILED")
    assert f"job {first} already trains the run twice" in said
    assert f"scancel {first}" in said
    done = len(training.metrics("twice"))
    training.wait_for_step(first, "twice", done + 1)
    training.end(first)


def test_a_job_that_got_on_to_no_checkpoint_is_not_started_again(training: Training) -> None:
    said = training.wait(training.submit("early", DIES_AFTER="1"), state="FAILED")
    assert (
        "the training failed (train-dy-p4d-2: exit code 1); not started again, since no checkpoint was"
        in said
    )
    assert "go on with it by hand: RUN_NAME=early sbatch --nodes 2" in said
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


def test_cancelled_it_saves_and_says_how_to_go_on(training: Training) -> None:
    job_id = training.submit("cancelled", MAX_STEPS="1000", CHECKPOINT_EVERY="1000")
    training.wait_for_step(job_id, "cancelled", 3)
    training.end(job_id)
    wait_for_words(training, job_id, "go on with it")
    at = steps(training, "cancelled")[-1]
    assert f"stopped at step {at} and saved" in training.output(job_id)
    assert f"training from step {at}" in training.run("cancelled", MAX_STEPS=str(at + 2))


def test_at_its_time_limit_it_is_requeued_if_asked_and_not_after_scancel(training: Training) -> None:
    settings = {"REQUEUE_AT_TIME_LIMIT": "1", "MAX_STEPS": "1000", "CHECKPOINT_EVERY": "1000"}
    job_id = training.submit("timed", "--time=1", "--signal=TERM@10", **settings)
    wait_for_words(training, job_id, "the job is at its time limit, and the training saved at step")
    at = steps(training, "timed")[-1]
    wait_for_words(training, job_id, f"goes on from step {at}, restart 1 of 3; queued again")
    training.wait_for_step(job_id, "timed", at + 2)
    assert f"training from step {at}" in training.output(job_id)
    training.end(job_id)
    wait_for_words(training, job_id, "and saved, as Slurm asked (time limit, scancel or requeue)")
    wait_for_words(training, job_id, "unless Slurm has queued it again: RUN_NAME=timed sbatch --nodes 2")
    assert training.slurm.job_state(job_id) == "CANCELLED"


def test_one_slurm_task_a_rank(training: Training) -> None:
    training.run("tasks", LAUNCHER="srun", MAX_STEPS="2", NPROC_PER_NODE="2")
    world = {name: (training.run_dir("tasks") / f"world-{name}").read_text() for name in range(4)}
    assert world == {0: "0 4", 1: "1 4", 2: "0 4", 3: "1 4"}


def test_intel_mpi_starts_the_ranks_and_a_cancelled_job_is_not_queued_again(training: Training) -> None:
    workload = training.shared / "training" / "tiny-mpi"
    shutil.copytree(TINY, workload)
    (workload / "requirements.txt").write_text("impi-rt==2021.18.1\n")
    (workload / "prepare.sh").write_text(WITH_REQUIREMENTS)
    own = {"workload": "tiny-mpi", "LAUNCHER": "mpirun"}
    job_id = training.submit("mpi", MAX_STEPS="1000", **own)
    run_dir = training.shared / "runs" / "tiny-mpi" / "mpi"
    # Rank 0 makes an empty metrics.jsonl at its start, and fills it when it has met the other.
    metrics = run_dir / "metrics.jsonl"
    wait_until(lambda: metrics.is_file() and metrics.read_text() != "", timeout_s=120, what="no step")
    assert [(run_dir / f"world-{rank}").read_text() for rank in range(2)] == ["0 2", "0 2"]
    training.end(job_id)
    wait_for_words(training, job_id, "ended as Slurm asked (time limit, scancel or requeue), without saving")
    assert training.slurm.job_state(job_id) == "CANCELLED"


def test_a_launcher_that_the_workload_does_not_take_is_refused(training: Training) -> None:
    said = training.wait(training.submit("wrong", LAUNCHER="ssh"), state="FAILED")
    assert "tiny cannot be started with LAUNCHER=ssh" in said
    assert "Take one of these: torchrun, srun, mpirun." in said
    said = training.wait(training.submit("wrong", LAUNCHER="mpirun"), state="FAILED")
    assert "tiny has no Intel MPI: its requirements.txt does not name impi-rt" in said


def test_more_nodes_than_there_are_are_refused_at_submission(training: Training) -> None:
    with pytest.raises(SlurmError, match="ode count"):
        training.submit("many", "--nodes=3")


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
    wait_until(lambda: training.slurm.job_state(job_id) == "PENDING", timeout_s=60, what="not queued again")
    scontrol(training, "update", f"nodename={name}", "state=power_down_force")
    states = training.slurm.node_states
    wait_until(lambda: not states()[name].startswith("down"), timeout_s=60, what=f"{name} stays down")


def test_a_lost_node_and_the_job_starts_on_another_and_goes_on(training: Training, whole_run: str) -> None:
    job_id = training.submit("lost")
    training.wait_for_step(job_id, "lost", 5)
    lose_node(training, NODES[1])
    get_node_back(training, NODES[1], job_id)
    training.wait(job_id, state="COMPLETED")
    assert [count for count, _ in starts(training, "lost")] == ["0", "1"]
    assert losses(training, "lost") == losses(training, "whole")


def test_a_lost_node_before_a_new_checkpoint_and_the_job_is_not_started_for_ever(training: Training) -> None:
    job_id = training.submit("stuck", CHECKPOINT_EVERY="1000")
    training.wait_for_step(job_id, "stuck", 3)
    lose_node(training, NODES[1])
    get_node_back(training, NODES[1], job_id)
    said = training.wait(job_id, state="FAILED")
    assert "a node was lost, and no checkpoint was written since the last start, at step 0" in said
    assert "RUN_NAME=stuck sbatch --nodes 2" in said
    assert len(starts(training, "stuck")) == 1


def wait_for_words(training: Training, job_id: int, words: str) -> None:
    wait_until(lambda: words in training.output(job_id), timeout_s=60, what=f"the job does not say: {words}")


class Metadata(http.server.BaseHTTPRequestHandler):
    """EC2's metadata service, version 2: a token first, then the notice, once there is one."""

    notice: ClassVar[str] = ""

    def do_PUT(self) -> None:
        self._answer("token" if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else "")

    def do_GET(self) -> None:
        allowed = self.headers["X-aws-ec2-metadata-token"] == "token"
        asked = self.path == "/latest/meta-data/spot/instance-action"
        self._answer(self.notice if allowed and asked else "")

    def _answer(self, text: str) -> None:
        self.send_response(200 if text else 404)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def metadata() -> Iterator[str]:
    """Address of a metadata service that runs."""
    Metadata.notice = ""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_spot_notice_and_the_job_saves_and_starts_again(training: Training, metadata: str) -> None:
    family = training.settings.read_text()
    training.settings.write_text(f"{family}export CAPACITY='spot'\n")
    env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata, "MAX_STEPS": "60", "PREPARE_S": "3"}
    # On a node that is about to go, nothing is begun, and nothing is counted.
    Metadata.notice = '{"action": "terminate", "time": "2026-11-22T03:00:00Z"}'
    job_id = training.submit("spot", CHECKPOINT_EVERY="1000", **env)
    wait_for_words(training, job_id, "the training was not started; queued again")
    Metadata.notice, notice = "", Metadata.notice
    training.wait_for_step(job_id, "spot", 3)
    Metadata.notice = notice
    wait_for_words(training, job_id, "restart 1 of 3; queued again")
    Metadata.notice = ""
    said = training.wait(job_id, state="COMPLETED")
    training.settings.write_text(family)
    at = starts(training, "spot")[1][1]
    assert "EC2 takes a node (train-dy-p4d-" in said
    assert f"the training saved at step {at}; goes on from step {at}, restart 1 of 3" in said
    assert steps(training, "spot") == list(range(1, 61))
