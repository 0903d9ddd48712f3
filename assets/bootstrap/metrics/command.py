"""Output of a node's programs. Runs on Python 3.9 and later, with only the standard library."""

from __future__ import annotations

import os
import subprocess

TIMEOUT_S = 20


def output_of(*command: str) -> str:
    """Return what a command prints, in English.

    Raises:
        OSError, subprocess.CalledProcessError, subprocess.TimeoutExpired: it is missing, failed, or hangs.
    """
    return subprocess.run(
        command,
        check=True,
        timeout=TIMEOUT_S,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, "LC_ALL": "C"},
    ).stdout
