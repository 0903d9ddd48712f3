"""Measuring of a program from outside: its lines with their times, and its memory."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from bench.measuring.programs import BaselineError, Watched, turns, watch


def shell(script: str, tmp_path: Path, **options: bool | float) -> Watched:
    return watch(["bash", "-c", script], cwd=tmp_path, environment=os.environ, **options)  # type: ignore[arg-type]


def test_seconds_a_step_exclude_the_warm_up() -> None:
    lines = [(0.0, "step 1: loss"), (9.0, "step 2: loss"), (10.0, "step 3: loss"), (12.0, "step 5: loss")]
    watched = Watched(seconds=1.0, lines=lines)
    assert watched.step_s(r"^step (\d+): loss", after=2) == pytest.approx(1.0)


def test_failure_shows_the_last_lines(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match=r"(?s)exit code 3 in \S+\n11\n.*\n30$"):
        shell("seq 30; exit 3", tmp_path)


def test_late_program_ends_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="no end after"):
        shell("sleep 71.7 & sleep 71.7", tmp_path, timeout_s=0.2)
    assert not [each for each in psutil.process_iter(["cmdline"]) if "71.7" in (each.info["cmdline"] or [])]


def test_memory_counts_all_processes(tmp_path: Path) -> None:
    hold = f"{sys.executable} -c 'import time; x = bytearray(60_000_000); time.sleep(0.5)'"
    watched = shell(f"{hold} & {hold} & wait", tmp_path, memory=True)
    assert 120_000_000 < watched.peak_bytes < 200_000_000


def test_second_round_runs_in_reverse_order() -> None:
    order: list[str] = []

    def work(name: str) -> float:
        order.append(name)
        return float(len(order))

    works = {"a": lambda: work("a"), "b": lambda: work("b")}
    assert turns(works, rounds=2) == {"a": [1.0, 4.0], "b": [2.0, 3.0]}
    assert order == ["a", "b", "b", "a"]
    assert turns(works, rounds=1, warm_up=1) == {"a": [8.0], "b": [7.0]}
