"""Times of programs that alternate."""

import os
from pathlib import Path

import pytest

from bench.measuring.timing import BaselineError, ratios, run, take_turns


def test_works_alternate_and_the_first_round_is_not_counted() -> None:
    order: list[str] = []
    found = take_turns({"a": lambda: order.append("a"), "b": lambda: order.append("b")}, rounds=2)
    assert order == ["a", "b"] * 3
    assert {name: len(seconds) for name, seconds in found.items()} == {"a": 2, "b": 2}


def test_ratios_are_those_of_each_round() -> None:
    assert ratios([1.0, 6.0], [2.0, 3.0]) == [0.5, 2.0]


def test_a_program_that_fails_is_an_error_with_the_end_of_its_output(tmp_path: Path) -> None:
    script = "seq 30; exit 3"
    with pytest.raises(BaselineError, match=r"(?s)exit code 3 in \S+\n11\n.*\n30$"):
        run(["bash", "-c", script], cwd=tmp_path, environment=os.environ)


def test_a_program_that_takes_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BaselineError, match="sleep: did not finish within 0 s"):
        run(["sleep", "9"], cwd=tmp_path, environment=os.environ, timeout_s=0.1)
