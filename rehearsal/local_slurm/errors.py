"""The error of this package, and the end of a log for its message."""

from pathlib import Path

from rehearsal.problems import RehearsalError


class SlurmError(RehearsalError):
    """The local Slurm cannot start, run a job or stop; the message has the remedy."""


def tail(path: Path, *, lines: int = 20) -> str:
    """Return the last `lines` lines of the log at `path`, or a note that it does not exist."""
    if not path.is_file():
        return f"(no log at {path})"
    text = path.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
    return "\n".join([f"--- the end of {path}", *text])
