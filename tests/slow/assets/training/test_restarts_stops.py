"""A job that is asked to stop, by Slurm or by EC2: job.slurm on a real Slurm, tiny trainer."""

import http.server
import threading
from collections.abc import Iterator
from typing import ClassVar

import pytest

from tests.slow.assets.training.tiny import let_go, starts, steps, tiny_on_slurm, wait_for_words
from tests.slow.assets.training.training import Training, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Training]:
    with tiny_on_slurm(tmp_path_factory.mktemp("tiny")) as training:
        yield training


def test_cancelled_it_saves_and_says_how_to_go_on(training: Training) -> None:
    job_id = training.submit("cancelled", MAX_STEPS="1000", CHECKPOINT_EVERY="1000")
    training.wait_for_step(job_id, "cancelled", 3)
    training.end(job_id)
    wait_for_words(training, job_id, "continue it")
    at = steps(training, "cancelled")[-1]
    assert f"stopped at step {at} and saved" in training.output(job_id)
    assert f"training from step {at}" in training.run("cancelled", MAX_STEPS=str(at + 2))


def test_at_its_time_limit_it_is_requeued_if_asked_and_not_after_scancel(training: Training) -> None:
    settings = {"REQUEUE_AT_TIME_LIMIT": "1", "MAX_STEPS": "1000", "CHECKPOINT_EVERY": "1000"}
    job_id = training.submit("timed", "--time=1", "--signal=TERM@10", **settings)
    wait_for_words(training, job_id, "the job is at its time limit: stopped at step")
    at = steps(training, "timed")[-1]
    wait_for_words(training, job_id, f"continues from step {at}; queued again")
    training.wait_for_step(job_id, "timed", at + 2)
    assert f"training from step {at}" in training.output(job_id)
    training.end(job_id)
    wait_for_words(training, job_id, "and saved, as Slurm asked (time limit, scancel or requeue)")
    again = f"TRAINING_SHARED={training.shared} RUN_NAME=timed sbatch --nodes 2"
    wait_for_words(training, job_id, f"unless Slurm has queued it again: {again}")
    assert training.slurm.job_state(job_id) == "CANCELLED"


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


def wait_for_notice(training: Training, job_id: int, restart: int) -> None:
    notice = training.run_dir("spot") / f"spot-notice-{job_id}-{restart}"
    with training.ended_if_late(job_id):
        wait_until(notice.is_file, timeout_s=180, what="no notice has come")


def test_a_spot_notice_and_the_job_saves_and_starts_again(training: Training, metadata: str) -> None:
    family = training.settings.read_text()
    training.settings.write_text(f"{family}export CAPACITY='spot'\n")
    hold = training.shared / "hold"
    hold.touch()
    env = {"AWS_EC2_METADATA_SERVICE_ENDPOINT": metadata, "MAX_STEPS": "60", "PREPARE_HOLD": str(hold)}
    # On a node that is about to go, nothing is begun, and nothing is counted.
    Metadata.notice = '{"action": "terminate", "time": "2026-11-22T03:00:00Z"}'
    job_id = training.submit("spot", CHECKPOINT_EVERY="1000", HOLD_AT="4", **env)
    wait_for_notice(training, job_id, 0)
    hold.unlink()
    wait_for_words(training, job_id, "the training was not started; queued again")
    Metadata.notice, notice = "", Metadata.notice
    training.wait_for_step(job_id, "spot", 3)
    Metadata.notice = notice
    wait_for_notice(training, job_id, 1)
    let_go(training, "spot")
    wait_for_words(training, job_id, "and the training saved at step")
    Metadata.notice = ""
    said = training.wait(job_id, state="COMPLETED")
    training.settings.write_text(family)
    at = starts(training, "spot")[1][1]
    assert "EC2 takes a node (train-dy-p4d-" in said
    assert f"the training saved at step {at}; continues from step {at}; queued again" in said
    assert steps(training, "spot") == list(range(1, 61))
