"""A job that is asked to stop, by Slurm or by EC2: job.slurm on a real Slurm, tiny trainer."""

import contextlib
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slow.assets.training.tiny import let_go, scontrol, starts, steps, tiny_on_slurm, wait_for_words
from tests.slow.assets.training.training import Training, wait_until
from training_cluster.paths import ASSETS

pytestmark = pytest.mark.slow

# No checkpoint but that of a stop.
ENDLESS = {"MAX_STEPS": "1000", "CHECKPOINT_EVERY": "1000"}


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with tiny_on_slurm(tmp_path_factory.mktemp("tiny")) as training:
        yield training


@pytest.fixture(scope="module", autouse=True)
def timed(training: Training) -> int:
    """Return a job that reaches its time limit, of a minute at least, while other tests run."""
    limit = ("--nodes=1", "--time=1", "--signal=TERM@10")
    return training.submit("timed", *limit, REQUEUE_AT_TIME_LIMIT="1", **ENDLESS)


def test_long_saves_survive_scancel_and_a_requeue(training: Training) -> None:
    """A save may take as long as KillWait, which is the cluster's."""
    slurm = training.slurm
    config = subprocess.run(["scontrol", "show", "config"], env=slurm.client_env(), capture_output=True)
    assert b"KillWait                = 600 sec" in config.stdout
    jobs = {run: training.submit(run, STOP_SAVE_S="3", **ENDLESS) for run in ("cancelled", "requeued")}
    for run, job_id in jobs.items():
        training.wait_for_step(job_id, run, 3)
    slurm.cancel(jobs["cancelled"])
    subprocess.run(["scontrol", "requeue", str(jobs["requeued"])], env=slurm.client_env(), check=True)
    training.wait(jobs["cancelled"], state="CANCELLED")
    wait_for_words(training, jobs["cancelled"], "continue it")
    at = steps(training, "cancelled")[-1]
    assert f"stopped at step {at} and saved" in training.output(jobs["cancelled"])
    assert f"training from step {at}" in training.run("cancelled", MAX_STEPS=str(at + 2))
    wait_for_words(training, jobs["requeued"], "restart 1")
    (checkpoint,) = training.checkpoints("requeued").glob("step-*")
    at = int(checkpoint.name.removeprefix("step-"))
    training.wait_for_step(jobs["requeued"], "requeued", at + 1)
    assert f"training from step {at}" in training.output(jobs["requeued"])
    training.end(jobs["requeued"])


class Metadata(http.server.BaseHTTPRequestHandler):
    """EC2's metadata service, version 2: a token first, then the notice."""

    notice = '{"action": "terminate", "time": "2026-11-22T03:00:00Z"}'

    def do_PUT(self) -> None:
        self._answer("token" if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else "")

    def do_GET(self) -> None:
        allowed = self.headers["X-aws-ec2-metadata-token"] == "token"
        is_notice = self.path == "/latest/meta-data/spot/instance-action"
        self._answer(self.notice if allowed and is_notice else "")

    def _answer(self, text: str) -> None:
        self.send_response(200 if text else 404)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet."""


@pytest.fixture
def metadata() -> Iterator[str]:
    """Address of a metadata service that runs."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextlib.contextmanager
def taken(training: Training, node: str, metadata: str) -> Iterator[Path]:
    """Run a node's root service, and yield its log; afterwards the node is in service again."""
    of_node = {"SLURMD_NODENAME": node, "AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata}
    argv = [sys.executable, str(ASSETS / "bootstrap" / "services" / "node_service.py")]
    log = training.shared / f"{node}.log"
    with (
        log.open("w") as said,
        subprocess.Popen(argv, env=training.slurm.client_env() | of_node, stdout=said) as service,
    ):
        try:
            wait_until(lambda: "drained" in log.read_text(), timeout_s=60, what="not drained")
            yield log
        finally:
            service.terminate()
            scontrol(training, "update", f"nodename={node}", "state=resume")


def nodes_of(training: Training, job_id: int) -> list[str]:
    argv = ["scontrol", "show", "hostnames", training.slurm.job(job_id).nodes]
    return subprocess.check_output(argv, env=training.slurm.client_env(), text=True).split()


def test_nodes_that_ec2_takes_are_left(training: Training, metadata: str) -> None:
    """The script's own node ends the job's start, and another one gives way to the spare."""
    why = "(training-cluster: EC2 takes it: spot terminate at 2026-11-22T03:00:00Z)"
    hold = training.shared / "hold"
    hold.touch()
    env = {"SPARES": "1", "MAX_STEPS": "12", "PREPARE_HOLD": str(hold), "CHECKPOINT_EVERY": "1000"}
    job_id = training.submit("spot", "--nodes=3", HOLD_AT="4", **env)
    wait_for_words(training, job_id, "preparing tiny")
    node = nodes_of(training, job_id)[0]
    with taken(training, node, metadata):
        hold.unlink()
        wait_for_words(training, job_id, f"without {node} {why}; queued again")
        training.wait_for_step(job_id, "spot", 3)
        script_node, node, spare = nodes_of(training, job_id)
        with taken(training, node, metadata) as log, training.ended_if_late(job_id):
            wait_until(lambda: "SIGTERM" in log.read_text(), timeout_s=60, what="no step is told")
            let_go(training, "spot")
            output = training.wait(job_id, state="COMPLETED")
    first, second = starts(training, "spot")
    assert first[1] == "0", "on the first nodes nothing was begun"
    assert f"{node} {why}, and the training saved at step {second[1]}; continues" in output
    assert f"from step {second[1]}, on {script_node[:-1]}[{script_node[-1]},{spare[-1]}]\n" in output
    assert steps(training, "spot") == list(range(1, 13))


def test_a_time_limit_requeues_and_scancel_ends(training: Training, timed: int) -> None:
    wait_for_words(training, timed, "the job is at its time limit: stopped at step")
    at = starts_after(training, timed)
    training.wait_for_step(timed, "timed", at + 2)
    assert f"continues from step {at}; queued again" in training.output(timed)
    training.end(timed)
    wait_for_words(training, timed, "and saved, as Slurm asked (time limit, scancel or requeue)")
    again = f"TRAINING_SHARED={training.shared} RUN_NAME=timed sbatch --nodes 1"
    wait_for_words(training, timed, f"unless Slurm has queued it again: {again}")
    assert training.slurm.job_state(timed) == "CANCELLED"


def starts_after(training: Training, job_id: int) -> int:
    """Return the step from which the next start goes on, which is far from its own time limit."""
    before = len(starts(training, "timed"))
    with training.ended_if_late(job_id):
        wait_until(lambda: len(starts(training, "timed")) > before, timeout_s=180, what="not started again")
    return int(starts(training, "timed")[-1][1])
