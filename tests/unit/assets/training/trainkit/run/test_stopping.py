"""Warning at the start of a run, where a stop leaves less time than a checkpoint takes."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.run.runs import a_run, checkpoints, metrics, row, stopping
from training_cluster.paths import TRAINING

# A model of 8 billion parameters in fp32 with AdamW's two moments.
BYTES = 96_400_000_000


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The environment of a job of on-demand nodes with the default file system and KillWait."""
    monkeypatch.setenv("SHARED_MBPS", "292")
    monkeypatch.setenv("KILL_WAIT_S", "600")
    monkeypatch.setenv("CAPACITY", "ondemand")
    return monkeypatch


def said(root: Path, capsys: pytest.CaptureFixture[str], *, size: int = BYTES, rank: int = 0) -> list[str]:
    stopping.warn_of_short_notice(a_run(root, rank=rank), checkpoint_bytes=size, every=200, may_lower=False)
    return capsys.readouterr().out.splitlines()


def save_in(root: Path, seconds: float) -> None:
    run = a_run(root)
    written = checkpoints.partial(run.checkpoint_dir, 400)
    written.mkdir()
    (written / "weights").write_text("w")
    checkpoints.publish(written, 400, run=run, keep=2, started=time.monotonic() - seconds)


def test_a_save_that_fits_every_notice_is_no_news(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert said(tmp_path, capsys, size=BYTES * 9 // 10) == []


def test_a_notice_in_which_a_save_in_progress_ends_and_that_of_the_stop_does_not_is_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = said(tmp_path, capsys)
    assert "takes about 330 s (96.4 GB at 292 MB/s), a stop up to 660 s, since a save in progress" in line
    assert "leaves 600 s, so the steps since a save in progress began would be lost. Order more" in line
    assert "CHECKPOINT_EVERY" not in line, "more saves would meet more stops"


def test_a_save_longer_than_slurms_wait_is_announced_with_the_ways_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (line,) = said(tmp_path, capsys, size=2 * BYTES)
    assert "takes about 660 s (192.8 GB at 292 MB/s), a stop up to 1,321 s, since" in line
    assert "own begins, and scancel or a requeue leaves 600 s, so up to 200" in line
    assert "up to 200 steps since the last checkpoint would be lost. Lower CHECKPOINT_EVERY, order" in line
    assert "sbatch --signal=TERM@SECONDS" in line
    assert said(tmp_path, capsys, size=2 * BYTES, rank=1) == [], "one rank is enough"


def test_a_save_longer_than_the_notice_of_a_spot_node_is_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: pytest.MonkeyPatch
) -> None:
    job.setenv("CAPACITY", "spot")
    line, _ = said(tmp_path, capsys)
    assert "takes about 330 s (96.4 GB at 292 MB/s), a stop up to 660 s" in line
    assert "and the notice of a spot node leaves 120 s, so up to 200 steps since" in line
    assert "or buy nodes on demand" in line


def test_a_measured_time_wins_over_the_estimate_and_steps_are_given_in_minutes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: pytest.MonkeyPatch
) -> None:
    job.setenv("CAPACITY", "spot")
    save_in(tmp_path, 100)
    (line,) = said(tmp_path, capsys)
    assert "a stop up to 200 s, since" in line
    assert "leaves 120 s, so the steps since a save in progress began would be lost" in line
    (a_run(tmp_path).run_dir / metrics.FILE).write_text(json.dumps(row(400, step_s=30)) + "\n{torn")
    (line,) = said(tmp_path, capsys)
    assert "takes about 100 s (measured at step 400), a stop up to 230 s" in line
    assert "up to 200 steps (100 minutes) since" in line
    # A save of 100 s every 67 steps of 30 s takes 5 % of the time.
    assert "Lower CHECKPOINT_EVERY to 67 (5% of the time for saving), order" in line


def test_without_a_throughput_and_a_measurement_nothing_is_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: pytest.MonkeyPatch
) -> None:
    job.setenv("SHARED_MBPS", "")
    assert said(tmp_path, capsys, size=100 * BYTES) == []


def test_the_job_hands_slurms_wait_to_the_ranks(tmp_path: Path) -> None:
    script = """
        scontrol() { printf 'JobRequeue              = 1\nKillWait                = 600 sec\nLaunch = x\n'; }
        source "$training/restarts.sh"
        read_kill_wait
        bash -c 'echo "$KILL_WAIT_S"'
    """
    env = {"PATH": os.environ["PATH"], "training": str(TRAINING)}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", script], env=env, capture_output=True, text=True)
    assert done.stdout == "600\n", done.stderr
