"""Programs whose output lines are timed, and whose memory is sampled while they run."""

from __future__ import annotations

import itertools
import os
import re
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.measuring.timing import BaselineError

Command = list[str | Path]
_TAIL_LINES = 20
_SAMPLE_EVERY_S = 0.1


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A program that succeeded."""

    seconds: float
    lines: Sequence[tuple[float, str]]
    """Seconds after the start, and the line, in order."""
    peak_bytes: int = 0
    """Peak memory of all its processes together, shared pages counted once; 0 if it was not sampled."""

    def at(self, pattern: str) -> float:
        """Return the seconds at which the first line matching the pattern came.

        Raises:
            BaselineError: no line matches.
        """
        for at, line in self.lines:
            if re.search(pattern, line):
                return at
        raise BaselineError(f"no line of its output matches {pattern!r}:\n{_tail(self.lines)}")

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
    memory: bool = False,
    timeout_s: float = 300,
) -> Watched:
    """Run a program to its end, in a process group that ends with this process.

    Raises:
        BaselineError: it failed, or took longer; with the end of its output.
    """
    began = time.perf_counter()
    process = subprocess.Popen(
        [str(each) for each in command],
        cwd=cwd,
        env={**environment, "PYTHONUNBUFFERED": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    late = threading.Timer(timeout_s, end_group, [process])
    sampler = _Sampler(process.pid) if memory else None
    lines: list[tuple[float, str]] = []
    try:
        late.start()
        assert process.stdout
        with process.stdout as printed:
            lines.extend((time.perf_counter() - began, line.rstrip("\n")) for line in printed)
        code = process.wait()
    finally:
        late.cancel()
        end_group(process)
    seconds = time.perf_counter() - began
    if code:
        why = f"no end after {timeout_s:.0f} s" if seconds > timeout_s else f"exit code {code}"
        raise BaselineError(f"{' '.join(map(str, command))}: {why} in {cwd}\n{_tail(lines)}")
    return Watched(seconds=seconds, lines=lines, peak_bytes=sampler.stop() if sampler else 0)


def end_group(process: subprocess.Popen[str]) -> None:
    """End the remaining processes of a program that has a process group of its own."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def turns(works: Mapping[str, Callable[[], float]], *, rounds: int) -> dict[str, list[float]]:
    """Return the measurements of each work in each round; every second round runs in reverse order.

    There is no round to warm up: each work leaves out its own first steps.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds):
        for name in list(works) if number % 2 == 0 else reversed(list(works)):
            found[name].append(works[name]())
    return found


class _Sampler:
    """A sampler of the largest memory of a process and its descendants, ten times a second."""

    def __init__(self, pid: int) -> None:
        self._root, self._peak = psutil.Process(pid), 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def stop(self) -> int:
        """Stop sampling and return the peak in bytes."""
        self._ended.set()
        self._thread.join()
        return self._peak

    def _sample(self) -> None:
        while not self._ended.wait(_SAMPLE_EVERY_S):
            self._peak = max(self._peak, sum(map(_bytes_of, self._processes())))

    def _processes(self) -> list[psutil.Process]:
        try:
            return [self._root, *self._root.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []


def _bytes_of(process: psutil.Process) -> int:
    try:
        return int(process.memory_full_info().pss)
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return 0


def _tail(lines: Sequence[tuple[float, str]]) -> str:
    return "\n".join(line for _, line in lines[-_TAIL_LINES:])
