"""The state of one job, and its output as it grows."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# States that a job leaves only by being requeued (squeue(1), JOB STATE CODES).
ENDED = frozenset(
    {
        "BOOT_FAIL",
        "CANCELLED",
        "COMPLETED",
        "DEADLINE",
        "FAILED",
        "NODE_FAIL",
        "OUT_OF_MEMORY",
        "PREEMPTED",
        "TIMEOUT",
    }
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One job, from `scontrol show job`."""

    job_id: int
    state: str
    reason: str
    """Reason why it waits or ended; "None" if there is none."""
    exit_code: int
    """Exit code of the batch script."""
    nodes: str
    """Host list, such as train-dy-p4d-[1-2]; empty before the job starts."""
    output: Path
    """File of its standard output."""

    @property
    def has_ended(self) -> bool:
        """True if the job has ended, in any state."""
        return self.state in ENDED

    @property
    def is_completed(self) -> bool:
        """True if the job ended successfully."""
        return self.state == "COMPLETED"


def parse_job(text: str) -> Job:
    """Read one line of `scontrol show job --oneliner`."""
    return Job(
        job_id=int(_field(text, "JobId")),
        state=_field(text, "JobState"),
        reason=_field(text, "Reason"),
        exit_code=int(_field(text, "ExitCode").partition(":")[0]),
        nodes=_field(text, "NodeList").replace("(null)", ""),
        output=Path(_field(text, "StdOut")),
    )


def _field(text: str, name: str) -> str:
    found = re.search(rf"(?:^| ){name}=(\S*)", text)
    return found.group(1) if found else ""


class Follower:
    """A reader that passes each new complete line of a growing file to a callback."""

    def __init__(self, path: Path, on_line: Callable[[str], None]) -> None:
        self._path = path
        self._on_line = on_line
        self._read = 0

    def read(self, *, last: bool = False) -> None:
        """Pass on the new lines; with `last`, an unfinished line too."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = len(new) if last else new.rfind(b"\n") + 1
        self._read += whole
        for line in new[:whole].decode(errors="replace").splitlines():
            self._on_line(line)
