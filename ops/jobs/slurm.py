"""Parses the jobs of squeue, sacct and scontrol into dataclasses. Pure."""

import re
from dataclasses import dataclass

from ops.account.head_node import MAX_OUTPUT_BYTES
from ops.printable import printable
from ops.usage import OpsError, UsageError

# From squeue(1), JOB STATE CODES: states that a job leaves only when it is requeued.
ENDED = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED NODE_FAIL OUT_OF_MEMORY PREEMPTED TIMEOUT".split()
)
FAILED = ENDED - {"CANCELLED", "COMPLETED", "PREEMPTED"}
"""States of a job that ended and that nobody wanted to end so."""
# The job's name and command come last, because they are free text that could shift other fields.
QUEUE_FORMAT = "%i|%u|%P|%T|%r|%D|%M|%l|%E|%j|%o"
ACCOUNT_FORMAT = "JobID,User,Partition,State,Reason,NNodes,Elapsed,Timelimit,JobName"
_UNLIMITED = "UNLIMITED"
# slurmctld gives a job without a limit a year when it starts (YEAR_MINUTES in its source).
_YEAR = "365-00:00:00"
_NOTHING = frozenset({"", "(null)", "None", "N/A", "Unknown"})
# An id may name a task of an array, 12_3, or a part of a heterogeneous job, 12+1.
_JOB_ID = re.compile(r"[1-9][0-9]*([_+][0-9]+)?")
# Forms of sbatch --time: minutes[:seconds], hours:minutes:seconds, days-hours[:minutes[:seconds]].
_TIME_LIMIT = re.compile(
    r"[0-9]+(:[0-9]+){0,2}|[0-9]+-[0-9]+(:[0-9]+){0,2}|UNLIMITED|INFINITE", re.IGNORECASE
)
_NUMBER = re.compile(r"[0-9]+")
_NEXT_JOB = re.compile(r"\n(?=JobId=)")
_FIELD = re.compile(r"(?:^| )([A-Z][A-Za-z/:]*)=")


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
class Job:
    """A job as `scontrol show job` describes it."""

    id: str
    workload: str
    state: str
    reason: str
    dependency: str
    exit_code: int
    """Exit code of the job script; 0 if a signal ended it."""
    signal: int
    """Signal that ended the job script; 0 without one."""
    nodes: int
    restarts: int
    time_limit: str
    output: str
    """Path of the output on the cluster; empty for a job without one."""

    @property
    def has_ended(self) -> bool:
        """True once the job neither runs nor waits."""
        return self.state in ENDED

    @property
    def waits(self) -> bool:
        """True while the job has no nodes, also after it was requeued."""
        return self.state == "PENDING"

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


def whole_lines(output: str) -> tuple[list[str], bool]:
    """Split the output of a command into its complete lines, and tell if the output was cut.

    Systems Manager cuts it at MAX_OUTPUT_BYTES.
    """
    lines = output.removesuffix("\n").split("\n") if output else []
    is_cut = len(output.encode()) >= MAX_OUTPUT_BYTES
    return (lines[:-1] if is_cut and not output.endswith("\n") else lines), is_cut


def parse_queue(lines: list[str]) -> tuple[tuple[QueuedJob, ...], int]:
    """Parse the output of `squeue --noheader --format QUEUE_FORMAT`.

    Returns:
        The jobs, and the number of other lines, which come of line ends in a job's name or command.
    """
    jobs = []
    for line in lines:
        fields = _split(line, QUEUE_FORMAT.count("|"))
        if len(fields) == QUEUE_FORMAT.count("|"):
            fields.append("")  # a line end cut off the name
        if len(fields) <= QUEUE_FORMAT.count("|") or not _is_job(fields[0], fields[5]):
            continue
        id_, user, partition, state, reason, nodes, elapsed, limit, dependency, name, command = fields
        jobs.append(
            QueuedJob(
                id=id_,
                workload=workload_of(command) or name,
                user=user,
                partition=partition,
                state=state,
                reason=_said(reason),
                dependency=_said(dependency),
                nodes=int(nodes),
                elapsed=elapsed,
                time_limit=_UNLIMITED if limit == _YEAR else limit,
            )
        )
    return tuple(jobs), len(lines) - len(jobs)


def parse_accounts(lines: list[str]) -> tuple[tuple[QueuedJob, ...], int]:
    """Parse the output of `sacct --noheader --parsable2 --allocations --format ACCOUNT_FORMAT`.

    Returns:
        The jobs, and the number of lines that are not jobs.
    """
    jobs = []
    for line in lines:
        fields = _split(line, ACCOUNT_FORMAT.count(","))
        if len(fields) <= ACCOUNT_FORMAT.count(",") or not _is_job(fields[0], fields[5]):
            continue
        id_, user, partition, state, reason, nodes, elapsed, limit, name = fields
        jobs.append(
            QueuedJob(
                id=id_,
                workload=name,
                user=user,
                partition=partition,
                state=state.partition(" ")[0],  # CANCELLED by 1000
                reason=_said(reason),
                dependency="",
                nodes=int(nodes),
                elapsed=elapsed,
                time_limit=_UNLIMITED if limit == _YEAR else limit,
            )
        )
    return tuple(jobs), len(lines) - len(jobs)


def parse_job(text: str) -> Job:
    """Parse `scontrol show job --oneliner`, of an array its first task. Raises OpsError."""
    # A name may contain a line end.
    line = printable(_NEXT_JOB.split(text, maxsplit=1)[0].rstrip())
    found = list(_FIELD.finditer(line))
    ends = [each.start() for each in found[1:]] + [len(line)] * bool(found)
    fields: dict[str, str] = {}
    for each, end in zip(found, ends, strict=True):
        # Only the first field of a name counts, so that text in the command line cannot replace it.
        fields.setdefault(each[1], line[each.end() : end].strip())
    if not {"JobId", "JobState"} <= fields.keys():
        raise OpsError(f"scontrol printed a job that trainctl cannot parse: {line}")
    exit_code, _, signal = fields.get("ExitCode", "0:0").partition(":")
    name = fields.get("JobName", "")
    output = _said(fields.get("StdOut", ""))
    return Job(
        id=fields["JobId"],
        workload=workload_of(fields.get("Command", "")) or name,
        state=fields["JobState"],
        reason=_said(fields.get("Reason", "")),
        dependency=_said(fields.get("Dependency", "")),
        exit_code=_number(exit_code, line),
        signal=_number(signal or "0", line),
        nodes=_number(fields.get("NumNodes", "0").partition("-")[0], line),
        restarts=_number(fields.get("Restarts", "0"), line),
        time_limit=fields.get("TimeLimit", ""),
        # Newer versions of Slurm do not fill in sbatch(1)'s filename patterns here.
        output=output.replace("%j", fields["JobId"]).replace("%A", fields["JobId"]).replace("%x", name),
    )


def workload_of(command: str) -> str:
    """Return the workload in `/fsx/training/job.slurm WORKLOAD ...`; empty for another command."""
    words = command.split()
    return words[1] if len(words) > 1 and words[0].endswith("/job.slurm") else ""


def _split(line: str, separators: int) -> list[str]:
    return [printable(part.strip()) for part in line.split("|", separators)]


def _is_job(id_: str, nodes: str) -> bool:
    return bool(_NUMBER.match(id_)) and nodes.isdigit()


def _said(word: str) -> str:
    return "" if word in _NOTHING else word


def _number(text: str, line: str) -> int:
    if not text.isdigit():
        raise OpsError(f"scontrol printed a number that trainctl cannot parse: {text} in {line}")
    return int(text)
