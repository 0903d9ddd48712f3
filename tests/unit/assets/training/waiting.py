"""Waits of tests for what happens in other processes, for as long as a busy machine may take."""

import subprocess
import time
from collections.abc import Callable

LONG_S = 120.0


def wait_until(holds: Callable[[], object], *, what: str) -> None:
    """Wait for a condition; an AssertionError with `what` if it does not come true."""
    deadline = time.monotonic() + LONG_S
    while not holds():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def read_until(process: subprocess.Popen[str], words: str) -> str:
    """Read the errors of a process up to a line with these words; an AssertionError if it ends before."""
    assert process.stderr
    read = ""
    for line in process.stderr:
        read += line
        if words in line:
            return read
    raise AssertionError(read)


def until(file: str) -> str:
    """Return shell code that waits for a file which a test makes, and not for ever if the test fails."""
    return f"for _ in {{1..{LONG_S * 10:.0f}}}; do [[ ! -e {file} ]] || break; /bin/sleep 0.1; done"
