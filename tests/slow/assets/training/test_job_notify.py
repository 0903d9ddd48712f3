"""NOTIFY of job.slurm: a person hears of start, return to the queue, end and giving up."""

import http.server
import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slow.assets.training.tiny import let_go, tiny_on_slurm
from tests.slow.assets.training.training import Training

pytestmark = pytest.mark.slow

SECRET = "B000/very-secret"


@pytest.fixture(scope="module")
def got() -> Iterator[tuple[str, list[str]]]:
    """Yield the address of a webhook, and what it gets."""
    messages: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages.append(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["text"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{SECRET}", messages
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory, got: tuple[str, list[str]]) -> Iterator[Training]:
    folder = tmp_path_factory.mktemp("notify")
    file = folder / "webhook"
    file.touch(mode=0o600)
    file.write_text(got[0])
    with tiny_on_slurm(folder, NOTIFY="webhook", NOTIFY_FILE=str(file)) as training:
        yield training


def said(got: tuple[str, list[str]], job_id: int) -> list[str]:
    """Return the events of a job, in their order."""
    return [each.partition("]")[0].strip("[") for each in got[1] if f"] job {job_id} (" in each]


def test_a_person_hears_of_each_start_and_of_the_end(training: Training, got: tuple[str, list[str]]) -> None:
    job_id = training.submit("killed", HOLD_AT="6")
    training.wait_for_step(job_id, "killed", 5)
    os.kill(int((training.run_dir("killed") / "pid-1").read_text()), signal.SIGKILL)
    let_go(training, "killed")
    output = training.wait(job_id, state="COMPLETED")
    assert said(got, job_id) == ["started", "queued again", "started", "finished"], output
    assert "from step 0 on 2 nodes (train-dy-p4d-[1-2]), restart 0" in got[1][0]
    assert "the training failed (train-dy-p4d-" in got[1][1]
    assert SECRET not in output


def test_a_person_hears_that_a_job_is_given_up_and_why(
    training: Training, got: tuple[str, list[str]]
) -> None:
    job_id = training.submit("given-up", MAX_RESTARTS="0", HOLD_AT="4")
    training.wait_for_step(job_id, "given-up", 3)
    os.kill(int((training.run_dir("given-up") / "pid-1").read_text()), signal.SIGKILL)
    let_go(training, "given-up")
    training.wait(job_id, state="FAILED")
    assert said(got, job_id) == ["started", "given up"]
    assert got[1][-1].endswith("not started again, since MAX_RESTARTS is 0")


def test_a_job_that_could_tell_nobody_ends_at_once_and_one_whose_message_is_lost_goes_on(
    training: Training, tmp_path: Path
) -> None:
    output = training.wait(training.submit("untold", NOTIFY_FILE=str(tmp_path / "none")), state="FAILED")
    assert "job.slurm: NOTIFY is webhook, but notifications cannot be sent." in output
    assert not training.run_dir("untold").exists()
    gone = tmp_path / "gone"
    gone.touch(mode=0o600)
    gone.write_text(f"http://127.0.0.1:1/{SECRET}")
    output = training.run("lost", NOTIFY_FILE=str(gone), MAX_STEPS="2")
    assert "notify.py: the webhook cannot be reached from this node" in output
    assert "no notification of this was sent: see the line above" in output
    assert SECRET not in output
