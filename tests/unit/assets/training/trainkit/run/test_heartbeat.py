"""The watch over runs that make no step: which silence is a hang, and which rank is named."""

import json
import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.unit.assets.training.trainkit.run.runs import heartbeat as watch
from tests.unit.assets.training.trainkit.run.runs import stacks

BUSY, LONG_S, Heartbeat, sentence = watch.BUSY, watch.LONG_S, watch.Heartbeat, watch.sentence
Stacks = stacks.Stacks

START = 1_000_000.0
WAITING, ELSEWHERE = '"loop.py", line 9 in all_reduce', '"data.py", line 3 in read'


def note_step(run_dir: Path, step: int, *, at: float, step_s: float | None = None) -> None:
    written = datetime.fromtimestamp(at, UTC).isoformat()
    with (run_dir / "metrics.jsonl").open("a") as file:
        file.write(json.dumps({"step": step, "time": written, "step_s": step_s}) + "\n")


@pytest.fixture
def heartbeat(tmp_path: Path) -> watch.Heartbeat:
    return Heartbeat(tmp_path, timeout_s=60, started=START)


def test_rows_of_an_earlier_start_are_no_steps_of_this_one(
    heartbeat: watch.Heartbeat, tmp_path: Path
) -> None:
    note_step(tmp_path, 1, at=START - 5)
    heartbeat.look(START + 100)
    assert heartbeat.silence_s(START + 100) == 100
    note_step(tmp_path, 2, at=START + 100)
    heartbeat.look(START + 101)
    assert heartbeat.silence_s(START + 111) == 10


def test_the_first_step_may_take_an_hour(heartbeat: watch.Heartbeat, tmp_path: Path) -> None:
    assert heartbeat.limit_s() == heartbeat.limit_s(5) == LONG_S
    assert Heartbeat(tmp_path, timeout_s=9000, started=START).limit_s() == 9000


def test_the_limit_is_ten_usual_times_between_rows_where_these_are_longer(
    heartbeat: watch.Heartbeat, tmp_path: Path
) -> None:
    for step, seconds in ((10, 0.0), (20, 500.0), (30, 509.0), (40, 518.0)):
        note_step(tmp_path, step, at=START + seconds)
        heartbeat.look(START + seconds)
    assert heartbeat.limit_s() == 90


def test_the_second_step_of_a_run_with_long_steps_has_ten_times_the_first(
    heartbeat: watch.Heartbeat, tmp_path: Path
) -> None:
    note_step(tmp_path, 1, at=START, step_s=90.0)
    heartbeat.look(START)
    assert heartbeat.limit_s() == 900
    note_step(tmp_path, 2, at=START + 70, step_s=70.0)
    heartbeat.look(START + 70)
    assert heartbeat.limit_s() == 700


@pytest.mark.parametrize("file", [BUSY, "outcome"])
def test_saves_and_the_end_may_take_an_hour_and_no_more(
    heartbeat: watch.Heartbeat, tmp_path: Path, file: str
) -> None:
    note_step(tmp_path, 1, at=START)
    heartbeat.look(START)
    (tmp_path / file).touch()
    os.utime(tmp_path / file, (START + 1, START + 1))
    heartbeat.look(START + 1000)
    assert heartbeat.silence_s(START + 1000) == 0
    heartbeat.look(START + LONG_S + 100)
    assert heartbeat.silence_s(START + LONG_S + 100) == 99


def test_a_step_after_a_save_has_its_whole_time(heartbeat: watch.Heartbeat, tmp_path: Path) -> None:
    note_step(tmp_path, 1, at=START)
    (tmp_path / BUSY).touch()
    os.utime(tmp_path / BUSY, (START, START))
    heartbeat.look(START + 500)
    (tmp_path / BUSY).unlink()
    heartbeat.look(START + 510)
    assert heartbeat.silence_s(START + 510) == 10


def test_a_rank_that_does_not_answer_is_named() -> None:
    ranks = [Stacks(0, "node-1", 11, WAITING), Stacks(1, "node-2", 12, "")]
    assert sentence(ranks, 480.4) == ("rank 1 on node-2 made no step for 480 s: it did not answer a signal")


def test_a_rank_that_is_elsewhere_than_the_others_is_named() -> None:
    ranks = [Stacks(each, f"node-{each}", each, WAITING) for each in range(3)]
    found = sentence([*ranks, Stacks(3, "node-3", 3, ELSEWHERE)], 480)
    assert found == f"rank 3 on node-3 made no step for 480 s: it was in {ELSEWHERE}"


def test_no_rank_is_named_where_all_wait_for_each_other() -> None:
    ranks = [Stacks(each, "node", each, WAITING) for each in range(3)]
    assert sentence(ranks, 480) == "no rank made a step for 480 s"
    two = [Stacks(0, "node", 1, WAITING), Stacks(1, "node", 2, ELSEWHERE)]
    assert sentence(two, 480) == "no rank made a step for 480 s", "one of two is no majority"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Folder of Slurm's programs for job 7."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("THIS_JOB", "7")
    monkeypatch.setattr(watch, "_AGAIN_S", 0)
    install(tmp_path, scancel=f'echo "$@" >{tmp_path}/killed', srun="exit 1")
    return tmp_path


def install(folder: Path, **programs: str) -> None:
    for name, text in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)


STEPS = 'printf "7.batch\\n7.extern\\n7.0\\n7.1\\n"'


def test_the_ranks_of_a_hang_are_ended_once_slurm_answers_again(
    slurm: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install(slurm, squeue=f"if mkdir {slurm}/down; then exit 1; fi; {STEPS}")
    watch.kill_steps()
    assert (slurm / "killed").read_text() == "--signal=KILL 7.0 7.1\n"
    assert "heartbeat: Slurm has not ended the ranks, and is asked again" in capfd.readouterr().err


def test_ranks_that_wait_for_a_lost_node_are_ended_soon(slurm: Path) -> None:
    """Slurm has then sent SIGTERM to the job; while it runs, a short silence is no hang."""
    looks = slurm / "looks"
    running = f"echo >>{looks}; if [ $(wc -l <{looks}) -lt 4 ]; then echo RUNNING"
    state = f"{running}; else echo COMPLETING; fi"
    install(slurm, squeue=f'case "$*" in *--steps*) {STEPS} ;; *) {state} ;; esac')
    note_step(slurm, 1, at=time.time() + 1)
    watch.watch(slurm, timeout_s=3600, ending_timeout_s=0.2)
    assert looks.read_text() == "\n" * 4
    assert (slurm / "failed").read_text() == "no rank made a step for 0 s\n"
    assert (slurm / "killed").read_text() == "--signal=KILL 7.0 7.1\n"


@pytest.mark.timeout(20)
def test_ranks_that_never_make_a_step_are_ended(slurm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(slurm, squeue=STEPS)
    monkeypatch.setattr(watch, "LONG_S", 0.2)
    watch.watch(slurm, timeout_s=0.1, ending_timeout_s=0.1)
    assert (slurm / "failed").read_text() == "no rank made a step for 0 s\n"
    assert (slurm / "killed").read_text() == "--signal=KILL 7.0 7.1\n"
