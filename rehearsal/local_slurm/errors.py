"""The error of this package, and the end of a log for its message."""

from pathlib import Path

from rehearsal import problems
from rehearsal.problems import RehearsalError


class SlurmError(RehearsalError):
    """The local Slurm cannot start, run a job or stop; the message has the remedy."""


def tail(path: Path, *, lines: int = 20) -> str:
    """Return the last `lines` lines of the log at `path`, or a note that it does not exist."""
    if not path.is_file():
        return f"(no log at {path})"
    return f"--- the end of {path}\n{problems.tail(path, lines=lines)}"
