"""Stops: the warning where one leaves too little time for a checkpoint, and steps after which a run saves."""

import itertools
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from trainkit.run import checkpoints, metrics, settings, stopping

from tests.unit.assets.training.trainkit.run.runs import a_run, row

# A model of 8 billion parameters in fp32 with AdamW's two moments: 330 s at 292 MB/s.
BYTES = 96_400_000_000
# 330 s are 5 % of 331 steps of 20 s.
STEP_S, LOWERED = 20.0, 331


@pytest.fixture(autouse=True)
def job(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A job of on-demand nodes with the default file system and KillWait."""
    for name, value in {"SHARED_MBPS": "292", "KILL_WAIT_S": "600", "CAPACITY": "ondemand"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CHECKPOINT_EVERY", raising=False)
    monkeypatch.setattr(sys, "argv", ["train.py"])
    return monkeypatch


def said(root: Path, capsys: pytest.CaptureFixture[str], *, size: int = BYTES, rank: int = 0) -> list[str]:
    stopping.warn_of_short_notice(a_run(root, rank=rank), checkpoint_bytes=size, every=200, may_lower=False)
    return capsys.readouterr().out.splitlines()


def test_a_short_notice_is_announced(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: pytest.MonkeyPatch
) -> None:
    assert said(tmp_path, capsys, size=BYTES * 9 // 10) == [], "two saves fit"
    (line,) = said(tmp_path, capsys)
    assert "takes about 330 s (96.4 GB at 292 MB/s), a stop up to 660 s, since a save in progress" in line
    assert "leaves 600 s, so the steps since a save in progress began would be lost. Order more" in line
    assert "CHECKPOINT_EVERY" not in line, "more saves would meet more stops"
    (line,) = said(tmp_path, capsys, size=2 * BYTES)
    assert "takes about 660 s (192.8 GB at 292 MB/s), a stop up to 1,321 s, since" in line
    assert "own begins, and scancel or a requeue leaves 600 s, so up to 200" in line
    assert "up to 200 steps since the last checkpoint would be lost. Lower CHECKPOINT_EVERY, order" in line
    assert "sbatch --signal=TERM@SECONDS" in line
    assert said(tmp_path, capsys, size=2 * BYTES, rank=1) == [], "one rank is enough"
    job.setenv("CAPACITY", "spot")
    line, _ = said(tmp_path, capsys)
    assert "and the notice of a spot node leaves 120 s, so up to 200 steps since" in line
    assert "or buy nodes on demand" in line
    job.setenv("SHARED_MBPS", "")
    assert said(tmp_path, capsys, size=100 * BYTES) == [], "nothing is known of the time of a save"


def test_a_measured_time_wins_over_the_estimate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: pytest.MonkeyPatch
) -> None:
    job.setenv("CAPACITY", "spot")
    run = a_run(tmp_path)
    written = checkpoints.partial(run.checkpoint_dir, 400)
    written.mkdir()
    (written / "weights").write_text("w")
    with job.context() as clock:
        clock.setattr("time.monotonic", lambda: 100.0)
        checkpoints.publish(written, 400, run=run, keep=2, started=0.0)
    (line,) = said(tmp_path, capsys)
    assert "a stop up to 200 s, since" in line
    assert "leaves 120 s, so the steps since a save in progress began would be lost" in line
    (run.run_dir / metrics.FILE).write_text(json.dumps(row(400, step_s=30)) + "\n{torn")
    (line,) = said(tmp_path, capsys)
    assert "takes about 100 s (measured at step 400), a stop up to 230 s" in line
    assert "up to 200 steps (100 minutes) since" in line
    # A save of 100 s every 67 steps of 30 s takes 5 % of the time.
    assert "Lower CHECKPOINT_EVERY to 67 (5% of the time for saving), order" in line


def saved_after(
    root: Path,
    job: pytest.MonkeyPatch,
    *,
    steps: int = 4000,
    every: int = 1000,
    size: int = BYTES,
    rank: int = 0,
    agree: Callable[[int], int] = int,
) -> list[int]:
    """Return the steps of a run on 10 TB after which it saves."""
    clock = itertools.count(0.0, STEP_S)
    job.setattr(stopping, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    job.setattr(shutil, "disk_usage", lambda _folder: SimpleNamespace(free=10**13))
    given = settings.TrainSettings(max_steps=steps, checkpoint_every=every)
    found = stopping.Saves(a_run(root, rank=rank), given, checkpoint_bytes=size, agree=agree)
    return [step for step in range(1, steps + 1) if found.due(step)]


def test_a_run_on_spot_saves_more_often(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: pytest.MonkeyPatch
) -> None:
    usual = [1000, 2000, 3000, 4000]
    unfinished = a_run(tmp_path, rank=0).checkpoint_dir / ".step-7.partial"
    unfinished.mkdir(parents=True)
    assert saved_after(tmp_path, job) == usual
    assert not unfinished.exists(), "its space is free before that of the next is asked for"
    job.setenv("CAPACITY", "spot")
    capsys.readouterr()
    assert saved_after(tmp_path, job) == [*range(LOWERED, 4000, LOWERED), 4000]
    warned, _of_scancel, lowered = capsys.readouterr().out.splitlines()
    assert "Lower CHECKPOINT_EVERY (this run does so after its first steps, where it helps)" in warned
    assert lowered.startswith(f"saving every {LOWERED} steps (110.3 minutes) instead of 1000: a checkpoint")
    assert "a CHECKPOINT_EVERY that you set is kept" in lowered
    assert saved_after(tmp_path, job, size=BYTES // 4) == usual, "it fits the notice"
    assert saved_after(tmp_path, job, steps=600, every=200) == [200, 400, 600], "often enough"
    for words in (["--checkpoint-every", "1000"], ["--checkpoint-every=1000"]):
        job.setattr(sys, "argv", ["train.py", *words])
        assert saved_after(tmp_path, job) == usual
    job.setattr(sys, "argv", ["train.py"])
    for name, value in (("CHECKPOINT_EVERY", "1000"), ("SHARED_MBPS", "")):
        with job.context() as given:
            given.setenv(name, value)
            assert saved_after(tmp_path, given) == usual


def test_the_first_rank_decides_for_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def agree(number: int) -> int:
        asked.append(number)
        return 7

    job.setenv("CAPACITY", "spot")
    assert saved_after(tmp_path, job, steps=20, rank=1, agree=agree) == [14, 20]
    assert asked == [0], "once, and another rank's own times do not count"
    assert capsys.readouterr().out == ""


def test_a_run_without_space_ends(tmp_path: Path, job: pytest.MonkeyPatch) -> None:
    # Those that are kept, and one that is being written.
    assert saved_after(tmp_path, job, size=10**13 // 3)
    with pytest.raises(SystemExit, match=r"checkpoints need 10002\.0 GB .* has 10000\.0 GB free"):
        saved_after(tmp_path, job, size=3_334_000_000_000)
    saved_after(tmp_path, job, size=3_334_000_000_000, rank=1)
    saved_after(tmp_path, job, size=5_000_000_000_000, steps=2000)
    with job.context() as spot, pytest.raises(SystemExit, match="need 15000"):
        spot.setenv("CAPACITY", "spot")
        saved_after(tmp_path, spot, size=5_000_000_000_000, steps=2000)
    (tmp_path / "checkpoints" / "run" / "step-000004").mkdir(parents=True)
    # job.slurm has waited for the space of one, and does so again after a failed save.
    saved_after(tmp_path, job, size=9_000_000_000_000)


def test_sigterm_is_noted_once_a_rank_asks() -> None:
    before = signal.getsignal(signal.SIGTERM)
    stop = stopping.Stop()
    try:
        assert signal.getsignal(signal.SIGTERM) == before, "until then it ends the rank"
        assert not stop.asked
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.asked
    finally:
        signal.signal(signal.SIGTERM, before)
