"""Cancels jobs, and says how to go on with their training."""

from __future__ import annotations

from dataclasses import dataclass

from ops.account.head_node import HeadNode
from ops.jobs.lookup import find_job, on


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """What became of the wish to cancel one job."""

    job_id: str
    done: bool
    said: str
    go_on: str = ""
    """What to type to go on with its training; empty where there is nothing to go on with."""


def cancel(job_id: str, head_node: HeadNode) -> Cancelled:
    """Cancel a job that waits or runs; others are refused. Raises OpsError and botocore's errors."""
    job = find_job(job_id, head_node)
    if job is None:
        return Cancelled(job_id=job_id, done=False, said=f"Slurm does not know job {job_id}, or no more.")
    if job.has_ended:
        return Cancelled(job_id=job_id, done=False, said=f"Job {job_id} has ended already: {job.ending}.")
    head_node.run("scancel", job_id)
    if job.waits and not job.restarts:
        return Cancelled(
            job_id=job_id, done=True, said=f"Job {job_id} ({job.workload}) is cancelled; it had not begun."
        )
    return Cancelled(
        job_id=job_id,
        done=True,
        said=f"Job {job_id} ({job.workload}) is cancelled: its training gets SIGTERM, "
        "and 30 seconds to save a checkpoint.",
        go_on=f"trainctl submit {job.workload} --nodes {job.nodes} --name job-{job_id}"
        f"{on(head_node.cluster_name)}",
    )
