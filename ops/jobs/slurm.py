"""Jobs of Slurm, as assets/bootstrap/metrics/slurm.py reads them. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from ops.usage import UsageError

# From squeue(1), JOB STATE CODES: states that a job leaves only when it is requeued.
ENDED = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT".split()
)
FAILED = ENDED - {"CANCELLED", "COMPLETED", "PREEMPTED"}
"""States of a job that ended and that nobody wanted to end so."""
# An id may name a task of an array, 12_3, or a part of a heterogeneous job, 12+1.
_JOB_ID = re.compile(r"[1-9][0-9]*([_+][0-9]+)?")
# Forms of sbatch --time: minutes[:seconds], hours:minutes:seconds, days-hours[:minutes[:seconds]].
_TIME_LIMIT = re.compile(
    r"[0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2}|UNLIMITED|INFINITE", re.IGNORECASE
)
_NUMBER = re.compile(r"[0-9]+")


@dataclass(frozen=True, kw_only=True)
class QueuedJob:
    """A job as squeue or sacct lists it; times have Slurm's form, `[days-]hours:minutes:seconds`."""

    id: str
    workload: str
    """Workload that job.slurm runs; for a job of another script, the job's name."""
    user: str
    partition: str
    state: str
    """State of the job: PENDING, RUNNING, COMPLETED, ... (squeue(1), JOB STATE CODES)."""
    reason: str
    """Slurm's reason why the job waits or ended; empty without one."""
    dependency: str
    """Dependency of the job, such as afterok:12(unfulfilled); empty without one."""
    nodes: int
    elapsed: str
    time_limit: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Self:
        """Return the job of a record of the head node."""
        return cls(**{each.name: row[each.name] for each in fields(cls)})

    @property
    def number(self) -> int:
        """Job id without the task of an array or the part of a heterogeneous job."""
        found = _NUMBER.match(self.id)
        return int(found[0]) if found else 0

    @property
    def waits(self) -> bool:
        """True while the job has no nodes, also after it was requeued."""
        return self.state == "PENDING"

    @property
    def has_ended(self) -> bool:
        """True once the job neither runs nor waits."""
        return self.state in ENDED


@dataclass(frozen=True, kw_only=True)
class Job(QueuedJob):
    """A job with all that squeue knows of it; the id of an array's task is a number, too."""

    submitted: float
    """Seconds since 1970."""
    exit_code: int
    """Exit code of the job script; 0 if a signal ended it."""
    signal: int
    """Signal that ended the job script; 0 without one."""
    restarts: int
    output: str
    """Path of the output on the cluster; empty for a job without one."""

    @property
    def ending(self) -> str:
        """State of the ended job, with its exit code, signal or time limit."""
        if self.state == "FAILED":
            how = f"signal {self.signal}" if self.signal else f"exit code {self.exit_code}"
            return f"FAILED ({how})"
        return f"TIMEOUT (its time limit is {self.time_limit})" if self.state == "TIMEOUT" else self.state


def check_job_id(job: str) -> str:
    """Return the id if its form is that of a job id. Raises UsageError."""
    if not _JOB_ID.fullmatch(job):
        raise UsageError(
            f'"{job}" is not a job id.\n  allowed: a number, such as 12\n  type:    trainctl jobs'
        )
    return job


def check_time_limit(limit: str) -> str:
    """Return a time limit if sbatch accepts its form. Raises UsageError."""
    if not _TIME_LIMIT.fullmatch(limit):
        raise UsageError(
            f"--time {limit}: not a time limit.\n"
            "  allowed: minutes, hours:minutes:seconds, or days-hours:minutes:seconds\n"
            "  type:    --time 8:00:00"
        )
    return limit
