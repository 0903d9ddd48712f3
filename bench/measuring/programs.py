"""Programs that run to their end and alternate, so that other load on the machine affects all of them."""

import itertools
import re
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal.processes import end_group

Command = list[str | Path]
_TAIL_LINES = 20
_GRACE_S = 5.0


class BaselineError(Exception):
    """A program to be measured failed. The message is complete."""


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A program that succeeded."""

    seconds: float
    lines: Sequence[tuple[float, str]]
    """Seconds after the start, and the line, in order."""

    def step_s(self, pattern: str, *, after: int) -> float:
        """Return the median seconds per step, from the lines whose group 1 is the number of a step.

        Args:
            after: number of the step up to which caches and threads warm up; those are not counted.

        Raises:
            BaselineError: fewer than two such lines.
        """
        found = ((at, re.search(pattern, line)) for at, line in self.lines)
        steps = [(at, int(match[1])) for at, match in found if match and int(match[1]) >= after]
        if len(steps) < 2:  # noqa: PLR2004
            raise BaselineError(
                f"fewer than two lines match {pattern!r} after step {after}:\n{_tail(self.lines)}"
            )
        pairs = itertools.pairwise(steps)
        return statistics.median((at - began) / (step - last) for (began, last), (at, step) in pairs)


def watch(
    command: Sequence[str | Path],
    *,
    cwd: Path,
    environment: Mapping[str, str],
    timeout_s: float = 300,
) -> Watched:
    """Run a program to its end, in a process group that ends with this process.

    Raises:
        BaselineError: it failed, or took longer; with the end of its output.
    """
    began = time.perf_counter()
    process = start(command, cwd=cwd, environment={**environment, "PYTHONUNBUFFERED": "1"})
    lines: list[tuple[float, str]] = []
    with limited(process, timeout_s):
        assert process.stdout
        with process.stdout as printed:
            lines.extend((time.perf_counter() - began, line.rstrip("\n")) for line in printed)
        code = process.wait()
    seconds = time.perf_counter() - began
    if code:
        why = f"no end after {timeout_s:.0f} s" if seconds > timeout_s else f"exit code {code}"
        raise BaselineError(f"{' '.join(map(str, command))}: {why} in {cwd}\n{_tail(lines)}")
    return Watched(seconds=seconds, lines=lines)


def start(
    command: Sequence[str | Path], *, cwd: Path, environment: Mapping[str, str]
) -> subprocess.Popen[str]:
    """Start a program in a process group of its own, with its output and its errors in one pipe."""
    return subprocess.Popen(
        [str(each) for each in command],
        cwd=cwd,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )


def run(
    command: Sequence[str | Path], *, cwd: Path, environment: Mapping[str, str], timeout_s: float = 600
) -> str:
    """Run a program to its end and return its output. Raises BaselineError as `watch` does."""
    watched = watch(command, cwd=cwd, environment=environment, timeout_s=timeout_s)
    return "\n".join(line for _, line in watched.lines)


@contextmanager
def limited(process: subprocess.Popen[str], timeout_s: float) -> Iterator[None]:
    """End a program and what it started after the block, or when its time is over."""
    late = threading.Timer(timeout_s, end_group, [process], {"grace_s": _GRACE_S})
    late.start()
    try:
        yield
    finally:
        late.cancel()
        end_group(process, grace_s=_GRACE_S)


def turns(
    works: Mapping[str, Callable[[], float]], *, rounds: int, warm_up: int = 0
) -> dict[str, list[float]]:
    """Return the measurements of each work in each round; every second round runs in reverse order.

    Args:
        works: functions that return one measurement.
        warm_up: number of rounds before the counted ones; 0 if each work leaves out its own first steps.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    for number in range(warm_up + rounds):
        for name in list(works) if number % 2 == 0 else reversed(list(works)):
            found[name].append(works[name]())
    return {name: values[warm_up:] for name, values in found.items()}


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> list[float]:
    """Return the ratio of the app's figure to the baseline's in each round; none if one did not run."""
    return [a / b for a, b in zip(ours, theirs, strict=bool(ours and theirs))]


def _tail(lines: Sequence[tuple[float, str]]) -> str:
    return "\n".join(line for _, line in lines[-_TAIL_LINES:])
