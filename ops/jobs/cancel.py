"""Cancels jobs, and returns the commands that continue their trainings."""

from dataclasses import dataclass

from ops.account.head_node import HeadNode
from ops.jobs.lookup import cluster_option, find_job
from training_cluster.catalog.families import load_base


@dataclass(frozen=True, kw_only=True)
class Cancelled:
    """Result of cancelling one job."""

    job_id: str
    done: bool
    said: str
    resume_command: str = ""
    """Command that continues the job's training; empty if there is nothing to continue."""


def cancel(job_id: str, head_node: HeadNode) -> Cancelled:
    """Cancel a waiting or running job; others are refused. Raises OpsError and botocore's errors."""
    job = find_job(job_id, head_node)
    if job is None:
        return Cancelled(job_id=job_id, done=False, said=f"Slurm does not know the job {job_id} (any more).")
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
        f"and up to {load_base().kill_wait_s // 60} minutes to save a checkpoint.",
        resume_command=f"trainctl submit {job.workload} --nodes {job.nodes} --name job-{job_id}"
        f"{cluster_option(head_node.cluster_name)}",
    )
