"""Reads jobs and nodes from a cluster's Slurm."""

import re
import shlex
from dataclasses import dataclass

from ops.account.head_node import CommandError, HeadNode
from ops.jobs.nodes import SINFO_FORMAT, Partition, UnavailableNodes, parse_sinfo
from ops.jobs.slurm import (
    ACCOUNT_FORMAT,
    ENDED,
    FAILED,
    QUEUE_FORMAT,
    Job,
    QueuedJob,
    parse_accounts,
    parse_job,
    parse_queue,
    whole_lines,
)
from training_cluster.stack_names import DEFAULT_CLUSTER

PARTITIONS = "/etc/training-cluster/partitions"
"""Folder of the head node with the environment of each partition's jobs."""
_UNKNOWN_JOB = re.compile("invalid job id", re.IGNORECASE)
# Start of the period for which ended jobs are read from accounting.
_ACCOUNTED_SINCE = "now-7days"


@dataclass(frozen=True, kw_only=True)
class Jobs:
    """The jobs of a cluster, from squeue and from accounting."""

    queue: tuple[QueuedJob, ...]
    """Running jobs, then waiting jobs; the oldest first."""
    ended: tuple[QueuedJob, ...]
    """Ended jobs, the newest first; empty unless they were requested."""
    notes: tuple[str, ...]
    """Sentences about jobs that are missing in the lists."""


def cluster_option(cluster_name: str) -> str:
    """Return the --cluster option that a printed command needs for this cluster, with a blank before it."""
    return "" if cluster_name == DEFAULT_CLUSTER else f" --cluster {cluster_name}"


def read_failed(head_node: HeadNode) -> tuple[QueuedJob, ...]:
    """Read the jobs that failed, the newest first, from squeue and, if there is accounting, from sacct.

    Only these are requested, since Systems Manager cuts the list of all jobs of a busy cluster.

    Raises OpsError and botocore's errors.
    """
    states = f"--states={','.join(sorted(FAILED))}"
    answer = head_node.run(
        "squeue", "--all", "--noheader", states, f"--format={QUEUE_FORMAT}", reads_only=True
    )
    found, _ = parse_queue(whole_lines(answer)[0])
    return _newest_first(_with_accounts(found, set(), head_node, [], FAILED))


def read_jobs(head_node: HeadNode, *, ended: bool = False) -> Jobs:
    """Read the queue, and ended jobs if requested. Raises OpsError and botocore's errors."""
    states = ("--states=all",) if ended else ()
    asked = ("squeue", "--all", "--noheader", *states, f"--format={QUEUE_FORMAT}")
    answer = head_node.run(*asked, reads_only=True)
    lines, is_cut = whole_lines(answer)
    found, unread = parse_queue(lines)
    queue = sorted((job for job in found if not job.has_ended), key=lambda job: (job.waits, job.number))
    known = {job.id for job in queue}
    notes = ["There are more jobs than Systems Manager returns at once."] if is_cut else []
    if unread:
        notes.append(_unread(unread, "squeue"))
    remembered = tuple(job for job in found if job.has_ended)
    if ended:
        remembered = _with_accounts(remembered, known, head_node, notes, ENDED)
    return Jobs(queue=tuple(queue), ended=_newest_first(remembered), notes=tuple(notes))


def _newest_first(jobs: tuple[QueuedJob, ...]) -> tuple[QueuedJob, ...]:
    return tuple(sorted(jobs, key=lambda job: job.number, reverse=True))


def _with_accounts(
    remembered: tuple[QueuedJob, ...],
    queued: set[str],
    head_node: HeadNode,
    notes: list[str],
    wanted: frozenset[str],
) -> tuple[QueuedJob, ...]:
    try:
        states = f"--state={','.join(sorted(wanted))}"
        answer = _sacct(head_node, f"--starttime={_ACCOUNTED_SINCE}", states, "--endtime=now")
    except CommandError as error:
        notes.append(
            "This cluster has no accounting (flag accounting), so Slurm forgets a job minutes after its end: "
            f"{error}"
        )
        return remembered
    lines, is_cut = whole_lines(answer)
    if is_cut:
        notes.append("More jobs ended in the last 7 days than Systems Manager returns at once.")
    found, unread = parse_accounts(lines)
    if unread:
        notes.append(_unread(unread, "sacct"))
    known = queued | {job.id for job in remembered}
    return (*(job for job in found if job.id not in known), *remembered)


def _sacct(head_node: HeadNode, *jobs: str) -> str:
    return head_node.run(
        *("sacct", "--allusers", "--noheader", "--parsable2", "--allocations"),
        *(*jobs, f"--format={ACCOUNT_FORMAT}"),
        reads_only=True,
    )


def _unread(count: int, program: str) -> str:
    return (
        f"{count} line(s) of {program} are not jobs, and are omitted: "
        "the name or the arguments of a job contain a line end."
    )


def find_job(job_id: str, head_node: HeadNode) -> Job | None:
    """Read one job; return None if Slurm does not know it, or has forgotten it.

    Raises OpsError and botocore's errors.
    """
    try:
        said = head_node.run("scontrol", "show", "job", "--oneliner", job_id, reads_only=True)
    except CommandError as error:
        if is_unknown_job(str(error)):
            return None
        raise
    return parse_job(said)


def read_accounts(job_id: str, head_node: HeadNode) -> tuple[QueuedJob, ...]:
    """Read a job from accounting, of an array all its tasks; return nothing without accounting.

    Raises OpsError and botocore's errors.
    """
    try:
        found, _ = parse_accounts(whole_lines(_sacct(head_node, f"--jobs={job_id}"))[0])
    except CommandError:
        return ()
    return found


def is_unknown_job(said: str) -> bool:
    """Return True if scontrol failed because Slurm has no such job, or no longer."""
    return bool(_UNKNOWN_JOB.search(said))


def read_nodes(head_node: HeadNode) -> tuple[tuple[Partition, ...], tuple[UnavailableNodes, ...]]:
    """Read partitions, and the nodes that accept no jobs. Raises OpsError and botocore's errors."""
    asked = ("sinfo", "--all", "--noheader", f"--format={SINFO_FORMAT}")
    return parse_sinfo(head_node.run(*asked, reads_only=True))


def read_facts(partition: str, head_node: HeadNode) -> dict[str, str]:
    """Read the environment of a partition's jobs (cluster/job_environment.py).

    Raises:
        CommandError: the head node has no such file.
        OpsError and botocore's errors.
    """
    return parse_facts(head_node.run("cat", f"{PARTITIONS}/{partition}.env", reads_only=True))


def parse_facts(text: str) -> dict[str, str]:
    """Parse the lines `export NAME=value` of a partition's file."""
    words = (word for line in text.splitlines() for word in shlex.split(line, comments=True))
    return dict(word.split("=", 1) for word in words if "=" in word)
