"""Measuring of a program from outside: its lines with their times, and its memory."""

import os
import sys
from pathlib import Path

import psutil
import pytest

from bench.measuring.timing import BaselineError
from bench.measuring.watched import Watched, turns, watch


def watched(*lines: tuple[float, str]) -> Watched:
    return Watched(seconds=1.0, lines=lines)


def shell(script: str, tmp_path: Path, **options: bool | float) -> Watched:
    return watch(["bash", "-c", script], cwd=tmp_path, environment=os.environ, **options)  # type: ignore[arg-type]


class TestWatched:
    def test_seconds_a_step_are_the_median_after_the_warm_up(self) -> None:
        lines = [(0.0, "step 1: loss"), (9.0, "step 2: loss"), (10.0, "step 3: loss"), (11.0, "step 4: loss")]
        assert watched(*lines, (99.0, "step 5: loss"), (100.0, "step 6: loss")).step_s(
            r"^step (\d+): loss", after=2
        ) == pytest.approx(1.0)

    def test_lines_that_come_every_few_steps_count_as_so_many(self) -> None:
        found = watched((1.0, "update 10"), (6.0, "update 20")).step_s(r"update (\d+)", after=10)
        assert found == pytest.approx(0.5)

    def test_no_lines_of_steps_are_an_error_that_shows_what_came(self) -> None:
        with pytest.raises(BaselineError, match="something else"):
            watched((1.0, "something else")).step_s(r"step (\d+)", after=0)

    def test_a_line_that_never_came_is_an_error(self) -> None:
        with pytest.raises(BaselineError, match="resuming"):
            watched((1.0, "begin")).at("resuming")


class TestWatch:
    def test_lines_are_timed_as_they_come(self, tmp_path: Path) -> None:
        found = shell("echo a; sleep 0.3; echo b", tmp_path)
        assert found.at("b") - found.at("a") > 0.2
        assert found.seconds >= found.at("b")

    def test_a_failure_says_code_and_last_words(self, tmp_path: Path) -> None:
        with pytest.raises(BaselineError, match=r"(?s)exit code 3.*no such corpus"):
            shell("echo no such corpus >&2; exit 3", tmp_path)

    def test_a_program_that_takes_too_long_ends_with_its_children(self, tmp_path: Path) -> None:
        with pytest.raises(BaselineError, match="no end after"):
            shell("sleep 71.7 & sleep 71.7", tmp_path, timeout_s=0.5)
        assert not [
            each for each in psutil.process_iter(["cmdline"]) if "71.7" in (each.info["cmdline"] or [])
        ]

    def test_memory_is_that_of_all_processes_together(self, tmp_path: Path) -> None:
        hold = f"{sys.executable} -c 'import time; x = bytearray(60_000_000); time.sleep(0.8)'"
        found = shell(f"{hold} & {hold} & wait", tmp_path, memory=True)
        assert 120_000_000 < found.peak_bytes < 200_000_000


def test_every_second_round_goes_the_other_way_round() -> None:
    order: list[str] = []

    def work(name: str) -> float:
        order.append(name)
        return float(len(order))

    found = turns({"a": lambda: work("a"), "b": lambda: work("b")}, rounds=2)
    assert order == ["a", "b", "b", "a"]
    assert found == {"a": [1.0, 4.0], "b": [2.0, 3.0]}
