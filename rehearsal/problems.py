"""The error that ends a rehearsal with one clear message, and the end of a log for it."""

from pathlib import Path


class RehearsalError(Exception):
    """A step failed or an option is wrong. The message names the place, the problem and its remedy."""


def tail(log: Path, *, lines: int) -> str:
    """Return the last lines of a log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])
