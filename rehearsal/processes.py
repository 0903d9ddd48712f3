"""Find the processes of a rehearsal by their environment, and end them.

A process is ours if its environment holds the rehearsal's marker (and any other variables of the caller), or
if it descends from such a process (a job may clear its environment).
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

import psutil

from rehearsal.problems import RehearsalError


def find(environment: Mapping[str, str]) -> set[psutil.Process]:
    """Find all live processes with `environment`, and their descendants; not the caller nor its ancestors."""
    me = psutil.Process()
    spared = {me, *me.parents()}
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        if process not in spared and carries(process, environment):
            found.add(process)
            found.update(descendants(process))
    return {process for process in found - spared if is_alive(process)}


def end(environment: Mapping[str, str], *, except_names: Collection[str] = (), grace_s: float) -> None:
    """Send SIGTERM, wait up to `grace_s` seconds, send SIGKILL; repeat once for new processes."""
    for seconds in (grace_s, 0):
        chosen = {process for process in find(environment) if name_of(process) not in except_names}
        _end_once(chosen, grace_s=seconds)


def end_program(environment: Mapping[str, str], name: str, *, grace_s: float) -> None:
    """End the processes of one program with `environment`: SIGTERM, a grace period, SIGKILL."""
    _end_once({process for process in find(environment) if name_of(process) == name}, grace_s=grace_s)


def end_group(process: subprocess.Popen[Any], *, grace_s: float) -> None:
    """End the process group of a child: SIGTERM, a grace period, SIGKILL to what is left of it."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(grace_s)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def check_none(environment: Mapping[str, str]) -> None:
    """Raise RehearsalError, with their names, if any process is left."""
    left = find(environment)
    if left:
        names = ", ".join(f"{process.pid} ({name_of(process)})" for process in left)
        raise RehearsalError(f"These processes did not end: {names}. End them with `kill -9`.")


def name_of(process: psutil.Process) -> str:
    """Return the program's name, or "" if the process has ended."""
    try:
        return process.name()
    except psutil.Error:
        return ""


def is_alive(process: psutil.Process) -> bool:
    """Return True if the process runs; a zombie does not."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _end_once(processes: set[psutil.Process], *, grace_s: float) -> None:
    if grace_s:
        for process in processes:
            _send(process.terminate)
    alive = _wait(processes, most_s=grace_s)
    for process in alive:
        _send(process.kill)
    _wait(alive, most_s=5)


def _wait(processes: Collection[psutil.Process], *, most_s: float) -> list[psutil.Process]:
    """Return the processes that live after this time; psutil.wait_procs raises where one ends as it looks."""
    end = time.monotonic() + most_s
    while (alive := [process for process in processes if is_alive(process)]) and time.monotonic() < end:
        time.sleep(0.05)
    return alive


def _send(end: Callable[[], None]) -> None:
    try:
        end()
    except psutil.NoSuchProcess:
        return


def carries(process: psutil.Process, environment: Mapping[str, str]) -> bool:
    """Return True if a process's own environment holds `environment`."""
    try:
        own = process.environ()
    except (psutil.Error, OSError):  # it has ended, is a kernel thread, or belongs to another user
        return False
    return all(own.get(key) == value for key, value in environment.items())


def descendants(process: psutil.Process) -> list[psutil.Process]:
    """Return all processes below one; none if it has ended."""
    try:
        return process.children(recursive=True)
    except psutil.Error:
        return []
