"""The watch over runs that make no step: which silence is a hang, and which rank is named."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
from trainkit.run import heartbeat as watch
from trainkit.run.heartbeat import BUSY, LONG_S, Heartbeat, sentence
from trainkit.run.stacks import Stacks

START = 1_000_000.0
WAITING, ELSEWHERE = '"loop.py", line 9 in all_reduce', '"data.py", line 3 in read'


def note_step(run_dir: Path, step: int, *, at: float, step_s: float | None = None) -> None:
    written = datetime.fromtimestamp(at, UTC).isoformat()
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": step, "time": written, "step_s": step_s}) + "\n")


@pytest.fixture
def heartbeat(tmp_path: Path) -> Heartbeat:
    return Heartbeat(tmp_path, timeout_s=60, now=START, began=START)


def test_rows_of_an_earlier_start_do_not_count(tmp_path: Path) -> None:
    note_step(tmp_path, 1, at=START - 50)
    kept = (tmp_path / "metrics.jsonl").read_text()
    note_step(tmp_path, 2, at=START - 5)
    heartbeat = Heartbeat(tmp_path, timeout_s=60, now=START, began=START)
    (tmp_path / "metrics.jsonl").write_text(kept)
    heartbeat.look(START + 100)
    assert heartbeat.limit_s() == LONG_S, "the next step is the first of this start"
    assert heartbeat.silence_s(START + 100) == 100
    note_step(tmp_path, 2, at=START - 9000)  # the clock was put back
    heartbeat.look(START + 101)
    assert heartbeat.silence_s(START + 111) == 10


def test_a_shorter_row_of_this_start_counts(tmp_path: Path) -> None:
    note_step(tmp_path, 1, at=START - 5, step_s=0.123456)
    heartbeat = Heartbeat(tmp_path, timeout_s=60, now=START, began=START)
    (tmp_path / "metrics.jsonl").unlink()
    note_step(tmp_path, 1, at=START + 1, step_s=0.5)
    heartbeat.look(START + 2)
    assert heartbeat.limit_s() == 60


def test_a_step_before_the_first_look_counts(tmp_path: Path) -> None:
    note_step(tmp_path, 1, at=START + 1, step_s=0.5)
    heartbeat = Heartbeat(tmp_path, timeout_s=60, now=START, began=START)
    heartbeat.look(START + 2)
    assert heartbeat.limit_s() == 60


def test_the_limit_follows_the_time_of_steps(heartbeat: Heartbeat, tmp_path: Path) -> None:
    assert heartbeat.limit_s() == heartbeat.limit_s(5) == LONG_S, "the first step may take an hour"
    assert Heartbeat(tmp_path, timeout_s=9000, now=START, began=START).limit_s() == 9000
    note_step(tmp_path, 1, at=START, step_s=90.0)
    heartbeat.look(START)
    assert heartbeat.limit_s() == 900
    limits = []
    for step, seconds in ((10, 70.0), (20, 570.0), (30, 579.0), (40, 588.0), (50, 597.0)):
        note_step(tmp_path, step, at=START + seconds, step_s=9.0)
        heartbeat.look(START + seconds)
        limits.append(heartbeat.limit_s())
    assert (limits[0], limits[-1]) == (700, 90), "ten usual times between rows"


@pytest.mark.parametrize("file", [BUSY, "outcome"])
def test_saves_and_the_end_may_take_an_hour(heartbeat: Heartbeat, tmp_path: Path, file: str) -> None:
    note_step(tmp_path, 1, at=START)
    heartbeat.look(START)
    heartbeat.look(START + 1)
    (tmp_path / file).touch()
    heartbeat.look(START + 1000)
    assert heartbeat.silence_s(START + 1000) == 0
    heartbeat.look(START + LONG_S + 100)
    assert heartbeat.silence_s(START + LONG_S + 100) == 99


def test_a_step_after_a_save_has_time(heartbeat: Heartbeat, tmp_path: Path) -> None:
    note_step(tmp_path, 1, at=START)
    (tmp_path / BUSY).touch()
    heartbeat.look(START + 500)
    (tmp_path / BUSY).unlink()
    heartbeat.look(START + 510)
    assert heartbeat.silence_s(START + 510) == 10


def test_the_rank_that_hangs_is_named() -> None:
    silent = [Stacks(0, "node-1", 11, WAITING), Stacks(1, "node-2", 12, "")]
    assert sentence(silent, 480.4) == ("rank 1 on node-2 made no step for 480 s: it did not answer a signal")
    ranks = [Stacks(each, f"node-{each}", each, WAITING) for each in range(3)]
    found = sentence([*ranks, Stacks(3, "node-3", 3, ELSEWHERE)], 480)
    assert found == f"rank 3 on node-3 made no step for 480 s: it was in {ELSEWHERE}"
    two = [Stacks(0, "node", 1, WAITING), Stacks(1, "node", 2, ELSEWHERE)]
    for unknown in (ranks, two):
        assert sentence(unknown, 480) == "no rank made a step for 480 s", "one of two is no majority"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of Slurm's programs for job 7."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("THIS_JOB", "7")
    monkeypatch.setattr(watch, "_AGAIN_S", 0)
    install(tmp_path, scancel=f'echo "$@" >{tmp_path}/killed', srun="exit 1")
    return tmp_path


@pytest.fixture
def srun() -> Iterator[subprocess.Popen[bytes]]:
    """The group of an srun that waits for a node without an answer."""
    with subprocess.Popen(["sleep", "60"], start_new_session=True) as process:
        yield process
        process.kill()


def install(folder: Path, **programs: str) -> None:
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


STEPS = 'printf "7.batch\\n7.extern\\n7.0\\n7.1\\n"'


def test_ranks_of_a_hang_are_ended(slurm: Path, capfd: pytest.CaptureFixture[str]) -> None:
    install(slurm, squeue=f"if mkdir {slurm}/down; then exit 1; fi; {STEPS}")
    watch.kill_steps()
    assert (slurm / "killed").read_text() == "--ctld --signal=KILL 7.0 7.1\n"
    assert "heartbeat: Slurm has not ended the ranks, and is asked again" in capfd.readouterr().err


def test_ranks_that_wait_for_a_node_end(
    slurm: Path, srun: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slurm has then sent SIGTERM to the job; while it runs, a short silence is no hang."""
    looks = slurm / "looks"
    running = f"echo >>{looks}; if [ $(wc -l <{looks}) -lt 4 ]; then echo RUNNING"
    state = f"{running}; else echo COMPLETING; fi"
    install(slurm, squeue=f'case "$*" in *--steps*) {STEPS} ;; *) {state} ;; esac')
    monkeypatch.setattr(watch, "notify", lambda run_dir, _: note_step(run_dir, 1, at=START))
    watch.watch(slurm, srun.pid, began=START, timeout_s=3600, ending_timeout_s=0.2)
    assert looks.read_text() == "\n" * 4
    assert (slurm / "failed").read_text().startswith("no rank made a step for ")
    assert (slurm / "killed").read_text() == "--ctld --signal=KILL 7.0 7.1\n"


def test_a_suspended_job_does_not_hang(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`scontrol suspend` stops the watch with the ranks, and both go on at the same time."""
    clock, sleeps = [START], iter([0, 9000, 0])

    def sleep(seconds: float) -> None:
        clock[0] += seconds + next(sleeps)

    monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: clock[0], sleep=sleep))
    with pytest.raises(StopIteration):
        watch.watch(slurm, 0, began=START, timeout_s=3600, ending_timeout_s=60)
    assert not (slurm / "failed").exists()


@pytest.mark.timeout(20)
def test_ranks_that_never_make_a_step_are_ended(
    slurm: Path, srun: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(slurm, squeue=STEPS)
    monkeypatch.setattr(watch, "LONG_S", 0.2)
    watch.watch(slurm, srun.pid, began=START, timeout_s=0.1, ending_timeout_s=0.1)
    assert (slurm / "failed").read_text().startswith("no rank made a step for ")
    assert (slurm / "killed").read_text() == "--ctld --signal=KILL 7.0 7.1\n"
    assert srun.wait() == -signal.SIGKILL
