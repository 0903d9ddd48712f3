"""The queue, for a terminal. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ops.jobs.columns import aligned
from ops.jobs.lookup import Jobs
from ops.jobs.reasons import plain_reason
from ops.jobs.slurm import QueuedJob

_HEAD = ("job", "workload", "user", "partition", "nodes", "state", "time", "limit", "")
_ENDINGS = {
    "NonZeroExitCode": "its script failed: trainctl logs {id}",
    "RaisedSignal": "a signal ended it: trainctl logs {id}",
    "TimeLimit": "its time was over",
    "NodeDown": "a node was lost",
}


def render_jobs(jobs: Jobs, *, ended: bool) -> Iterator[str]:
    """Lines for a terminal.

    Args:
        ended: whether ended jobs were asked for.
    """
    if not jobs.queue:
        yield "No job waits or runs."
    if shown := [*jobs.queue, *jobs.ended]:
        yield from aligned([_HEAD, *(_row(job) for job in shown)])
    if ended and not jobs.ended:
        yield "Slurm knows of no job that has ended."
    yield from jobs.notes


def _row(job: QueuedJob) -> tuple[str, ...]:
    if job.has_ended:
        why = _ENDINGS.get(job.reason, "").format(id=job.id)
    elif job.state == "PENDING":
        why = plain_reason(job.reason, dependency=job.dependency)
    elif job.state == "CONFIGURING":
        why = "its nodes start"
    else:
        why = ""
    nodes, state = str(job.nodes), job.state.lower()
    return (job.id, job.workload, job.user, job.partition, nodes, state, job.elapsed, job.time_limit, why)
