"""Renders the queue for a terminal. Pure."""

from collections.abc import Iterator

from ops.jobs.lookup import Jobs, cluster_option
from ops.jobs.reasons import plain_reason
from ops.jobs.slurm import QueuedJob
from ops.printable import aligned

_HEAD = ("job", "workload", "user", "partition", "nodes", "state", "time", "limit", "")
_NO_JOB = "No job is waiting or running."
_ENDINGS = {
    "NonZeroExitCode": "its script failed: trainctl logs {id}{where}",
    "RaisedSignal": "a signal ended it: trainctl logs {id}{where}",
    "TimeLimit": "it reached its time limit",
    "NodeDown": "a node was lost",
}


def render_jobs(jobs: Jobs, *, ended: bool, cluster_name: str) -> Iterator[str]:
    """Yield the lines for a terminal; `ended` is True if ended jobs were requested."""
    if not jobs.queue:
        yield "No job is waiting or running. These have ended:" if jobs.ended else _NO_JOB
    if shown := [*jobs.queue, *jobs.ended]:
        yield from aligned([_HEAD, *(_row(job, cluster_option(cluster_name)) for job in shown)])
    if ended and not jobs.ended:
        yield "Slurm lists no ended job."
    yield from jobs.notes


def _row(job: QueuedJob, where: str) -> tuple[str, ...]:
    if job.has_ended:
        why = _ENDINGS.get(job.reason, "").format(id=job.id, where=where)
    elif job.state == "PENDING":
        why = plain_reason(job.reason, dependency=job.dependency)
    elif job.state == "CONFIGURING":
        why = "its nodes are starting"
    else:
        why = ""
    nodes, state = str(job.nodes), job.state.lower()
    return (job.id, job.workload, job.user, job.partition, nodes, state, job.elapsed, job.time_limit, why)
