"""Reads jobs and nodes from a cluster's Slurm."""

import shlex
from dataclasses import dataclass

from ops.account.head_node import CommandError, HeadNode, Rows
from ops.jobs.nodes import Partition, UnavailableNodes, of_rows
from ops.jobs.slurm import ENDED, FAILED, Job, QueuedJob
from ops.usage import OpsError, UsageError
from training_cluster.problems import did_you_mean
from training_cluster.stack_names import DEFAULT_CLUSTER

PARTITIONS = "/etc/training-cluster/partitions"
"""Folder of the head node with the environment of each partition's jobs."""
# Written by 78-apply-accounts.sh.
_BUDGETS = "/etc/training-cluster/budgets"
# Start of the period for which ended jobs are read from accounting.
_ACCOUNTED_SINCE = "now-7days"
_ACCOUNTS = ("--allusers", "--allocations")


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
    rows, _, _ = head_node.ask_slurm("squeue", "--all", f"--states={','.join(sorted(FAILED))}")
    found = tuple(map(QueuedJob.of, rows))
    return _newest_first(_with_accounts(found, set(), head_node, [], FAILED))


def read_jobs(head_node: HeadNode, *, ended: bool = False) -> Jobs:
    """Read the queue, and ended jobs if requested. Raises OpsError and botocore's errors."""
    rows, is_cut, _ = head_node.ask_slurm("squeue", "--all", *(("--states=all",) if ended else ()))
    found = tuple(map(QueuedJob.of, rows))
    queue = sorted((job for job in found if not job.has_ended), key=lambda job: (job.waits, job.number))
    known = {job.id for job in queue}
    notes = ["There are more jobs than Systems Manager returns at once."] if is_cut else []
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
        since = f"--starttime={_ACCOUNTED_SINCE}"
        rows, is_cut, _ = head_node.ask_slurm("sacct", *_ACCOUNTS, since, states, "--endtime=now")
    except CommandError as error:
        notes.append(
            "This cluster has no accounting (flag accounting), so Slurm forgets a job minutes after its end: "
            f"{error}"
        )
        return remembered
    if is_cut:
        notes.append("More jobs ended in the last 7 days than Systems Manager returns at once.")
    known = queued | {job.id for job in remembered}
    return (*(job for job in map(QueuedJob.of, rows) if job.id not in known), *remembered)


def find_job(job_id: str, head_node: HeadNode) -> Job | None:
    """Read one job; return None if Slurm does not know it, or has forgotten it.

    Raises OpsError and botocore's errors.
    """
    rows, _, _ = head_node.ask_slurm("squeue", *job_options(job_id))
    return first_job(rows, job_id)


def job_options(job_id: str) -> tuple[str, ...]:
    """Return the options of squeue for one job, also an ended one."""
    return "--all", "--states=all", f"--jobs={job_id}"


def first_job(rows: Rows, job_id: str) -> Job | None:
    """Return the job, of an array its first task; None if Slurm does not know it, or has forgotten it."""
    # squeue lists all parts of a heterogeneous job for each of them.
    first = min(rows, key=lambda row: (row["id"] != job_id, int(row["job_id"])), default=None)
    return Job.of({**first, "id": first["job_id"]}) if first else None


def read_accounts(job_id: str, head_node: HeadNode) -> tuple[QueuedJob, ...]:
    """Read a job from accounting, of an array all its tasks; return nothing without accounting.

    Raises OpsError and botocore's errors.
    """
    try:
        rows, _, _ = head_node.ask_slurm("sacct", *_ACCOUNTS, f"--jobs={job_id}")
    except CommandError:
        return ()
    return tuple(map(QueuedJob.of, rows))


def read_nodes(head_node: HeadNode) -> tuple[tuple[Partition, ...], tuple[UnavailableNodes, ...]]:
    """Read partitions, and the nodes that accept no jobs. Raises OpsError and botocore's errors."""
    return of_rows(head_node.ask_slurm("sinfo", "--all")[0])


def find_partition(name: str | None, head_node: HeadNode) -> Partition:
    """Return a partition, by default Slurm's own. Raises OpsError if there is none, and botocore's errors."""
    partitions, _ = read_nodes(head_node)
    for each in partitions:
        if each.name == name or (name is None and each.is_default):
            return each
    names = [each.name for each in partitions]
    raise OpsError(
        f"{head_node.cluster_name} has no {f'partition {name}' if name else 'default partition'}."
        f"{did_you_mean(name or '', names)}\n"
        f"  allowed: --partition, one of: {', '.join(names) or 'none'}"
    )


def read_facts(partition: str, head_node: HeadNode) -> dict[str, str]:
    """Read the environment of a partition's jobs (cluster/job_environment.py).

    Raises:
        CommandError: the head node has no such file.
        OpsError and botocore's errors.
    """
    return parse_facts(head_node.run("cat", f"{PARTITIONS}/{partition}.env", reads_only=True))


def check_time(time_limit: str | None, account: str | None, partition: str, head_node: HeadNode) -> None:
    """Demand a time limit where the job's account has a budget, which starts no job that might exceed it.

    Args:
        account: account of the job; None for the user's own.

    Raises:
        UsageError: there is none.
        OpsError and botocore's errors.
    """
    if time_limit is not None:
        return
    try:
        budgets = [line.split() for line in head_node.run("cat", _BUDGETS, reads_only=True).splitlines()]
    except CommandError:
        return
    user = head_node.run("id", "-un", reads_only=True).strip() if budgets else ""
    spent = [name for name, _, *users in budgets if account == name or (account is None and user in users)]
    # Slurm bills nothing on nodes without accelerators.
    if spent and read_facts(partition, head_node).get("ACCELERATOR_KIND") != "none":
        raise UsageError(
            f"The account {spent[0]} has a budget of GPU hours: a job starts only if its time limit fits "
            "into what is left.\n"
            "  type:    --time LIMIT: minutes, or [days-]hours:minutes:seconds"
        )


def parse_facts(text: str) -> dict[str, str]:
    """Parse the lines `export NAME=value` of a partition's file, and the defaults `${NAME-value}`."""
    words = (word for line in text.splitlines() for word in shlex.split(line, comments=True))
    pairs = (word.split("=", 1) for word in words if "=" in word)
    return {name: value.removeprefix(f"${{{name}-").removesuffix("}") for name, value in pairs}
