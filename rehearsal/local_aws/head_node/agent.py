"""Systems Manager's agent on a head node, as far as Run Command needs it.

As in amazon-ssm-agent 3.3, five commands run at a time, and five more are accepted and wait
(appconfig/constants.go). A waiting command starts even after Systems Manager has given up on it, unless it
was cancelled (task/pool.go); its status is then unknown, and is TimedOut here. When a command is cancelled,
or runs longer than its executionTimeout, the agent kills its process group and does not wait for it
(executers/executers.go). The standard error of a failed command ends with a line of the agent
(plugins/runscript/runscript.go). The agent sends at most 24,000 bytes of each output, and a longer output
then ends with its mark (framework/runpluginutil/runpluginutil.go, plugins/pluginutil/pluginutil.go).
"""

import math
import os
import queue
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import IO

WORKERS = 5
BUFFER = 5
MOST_BYTES = 24_000
CUT = b"--output truncated--"
_STOPPED = 137
_POLL_S = 0.02
# Time to report a command that was killed at its limit.
_REPORT_S = 1.0


@dataclass(frozen=True, kw_only=True)
class Task:
    """One command for the head node."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    folder: str | None
    """Folder in which it starts; None for the agent's folder."""
    delivery_s: float
    """TimeoutSeconds: a command that the agent has not accepted by then never starts."""
    execution_s: float
    """executionTimeout: a command that has not ended by then is killed."""
    cancelled: threading.Event = field(default_factory=threading.Event)
    take: Callable[[], None] = lambda: None
    """Callback for when the agent has accepted the command."""
    start: Callable[[], None] = lambda: None
    """Callback for when the command starts."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The end of a command, with Systems Manager's names."""

    status: str
    details: str
    code: int
    """Exit code; -1 for a command that never started."""
    stdout: str = ""
    stderr: str = ""


_UNDELIVERED = Outcome(status="TimedOut", details="Delivery Timed Out", code=-1)
_GIVEN_UP = Outcome(status="TimedOut", details="Execution Timed Out", code=-1)
_CANCELLED = Outcome(status="Cancelled", details="Cancelled", code=-1)


class Agent:
    """An agent that runs WORKERS commands at a time, and holds BUFFER more."""

    def __init__(self) -> None:
        self._workers = threading.BoundedSemaphore(WORKERS)
        self._places = threading.BoundedSemaphore(WORKERS + BUFFER)

    def run(self, task: Task) -> Outcome:
        """Wait for a worker, then for the command; after both limits the command continues unobserved."""
        given_up = time.monotonic() + task.delivery_s + task.execution_s
        if not _acquired(self._places, task, deadline=time.monotonic() + task.delivery_s):
            return _CANCELLED if task.cancelled.is_set() else _UNDELIVERED
        task.take()
        ended = queue.SimpleQueue[Outcome]()
        threading.Thread(target=lambda: ended.put(self._work(task, given_up)), daemon=True).start()
        try:
            return ended.get(timeout=max(0.0, given_up - time.monotonic()) + _REPORT_S)
        except queue.Empty:
            return _GIVEN_UP

    def _work(self, task: Task, given_up: float) -> Outcome:
        try:
            if not _acquired(self._workers, task, deadline=math.inf):
                return _CANCELLED
            try:
                if time.monotonic() < given_up:
                    task.start()
                return _run(task)
            finally:
                self._workers.release()
        finally:
            self._places.release()


def _acquired(semaphore: threading.Semaphore, task: Task, *, deadline: float) -> bool:
    """Wait for the semaphore; return False if the task is cancelled or the deadline passes first."""
    while not task.cancelled.is_set() and time.monotonic() < deadline:
        if semaphore.acquire(timeout=_POLL_S):
            if not task.cancelled.is_set():
                return True
            semaphore.release()
    return False


def _run(task: Task) -> Outcome:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        try:
            process = subprocess.Popen(
                task.argv,
                env=dict(task.environment),
                cwd=task.folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
        except OSError as error:
            return _ended(127, b"", str(error).encode())
        status = _wait(process, task)
        if status is None:
            return _ended(process.returncode, _read(out), _read(err))
        os.killpg(process.pid, signal.SIGKILL)
        threading.Thread(target=process.wait, daemon=True).start()  # avoids a zombie without waiting
        details = "Execution Timed Out" if status == "TimedOut" else status
        return Outcome(
            status=status, details=details, code=_STOPPED, stdout=_sent(_read(out)), stderr=_sent(_read(err))
        )


def _wait(process: subprocess.Popen[bytes], task: Task) -> str | None:
    """Return the reason to kill the command; None if it ended by itself."""
    deadline = time.monotonic() + task.execution_s
    while True:
        try:
            process.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            if task.cancelled.is_set():
                return "Cancelled"
            if time.monotonic() > deadline:
                return "TimedOut"
        else:
            return None


def _ended(code: int, stdout: bytes, stderr: bytes) -> Outcome:
    if code == 0:
        return Outcome(
            status="Success", details="Success", code=0, stdout=_sent(stdout), stderr=_sent(stderr)
        )
    said = stderr + f"failed to run commands: exit status {code}".encode()
    return Outcome(status="Failed", details="Failed", code=code, stdout=_sent(stdout), stderr=_sent(said))


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _sent(output: bytes) -> str:
    """Return an output as the agent sends it. Text of exactly MOST_BYTES is cut as well."""
    if len(output) >= MOST_BYTES:
        output = output[: MOST_BYTES - len(CUT)] + CUT
    return output.decode(errors="replace")
