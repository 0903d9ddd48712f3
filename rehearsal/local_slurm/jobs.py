"""What slurmctld knows about one job, and its output as it grows."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# squeue(1), JOB STATE CODES: states that a job leaves only by being requeued.
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
    """One job as `scontrol show job` tells it."""

    job_id: int
    state: str
    reason: str
    """Why it waits or how it ended; "None" if there is nothing to say."""
    exit_code: int
    """The batch script's."""
    nodes: str
    """A host list, such as train-dy-p4d-[1-2]; empty before it starts."""
    output: Path
    """Its standard output."""

    @property
    def has_ended(self) -> bool:
        """Whether it will print no more."""
        return self.state in ENDED

    @property
    def is_completed(self) -> bool:
        """Whether it ended well."""
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
    """Hands each new whole line of a growing file to a callback."""

    def __init__(self, path: Path, on_line: Callable[[str], None]) -> None:
        self._path = path
        self._on_line = on_line
        self._read = 0

    def read(self, *, last: bool = False) -> None:
        """Hand on what came since; with `last`, an unfinished line too."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            new = file.read()
        whole = len(new) if last else new.rfind(b"\n") + 1
        self._read += whole
        for line in new[:whole].decode(errors="replace").splitlines():
            self._on_line(line)
