"""Times of programs that alternate, so that other load on the machine affects all of them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

_TAIL_LINES = 20


class BaselineError(Exception):
    """A program to be measured failed. The message is complete."""


def take_turns(works: Mapping[str, Callable[[], None]], *, rounds: int) -> dict[str, list[float]]:
    """Return the seconds of each work in each round; a first round warms up caches and is not counted."""
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 1):
        for name, work in works.items():
            began = time.perf_counter()
            work()
            if number:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the ratio of the app's time to the baseline's in each round."""
    return [a / b for a, b in zip(ours, theirs, strict=True)]


def run(
    command: Sequence[str | Path], *, cwd: Path, environment: Mapping[str, str], timeout_s: float = 600
) -> str:
    """Run a program to its end and return its output.

    Raises:
        BaselineError: it failed, or took longer; with the end of its output.
    """
    try:
        done = subprocess.run(
            [str(each) for each in command],
            cwd=cwd,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise BaselineError(f"{command[0]}: did not finish within {timeout_s:.0f} s in {cwd}") from late
    if done.returncode:
        tail = "\n".join(done.stdout.splitlines()[-_TAIL_LINES:])
        raise BaselineError(f"{' '.join(map(str, command))}: exit code {done.returncode} in {cwd}\n{tail}")
    return done.stdout
