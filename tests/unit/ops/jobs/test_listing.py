"""`trainctl jobs` prints commands that reach the cluster that was listed."""

import pytest

from ops.jobs.listing import render_jobs
from ops.jobs.lookup import Jobs
from ops.jobs.slurm import QueuedJob

FAILED = QueuedJob(
    id="17",
    workload="gpt2",
    user="ubuntu",
    partition="gpu",
    state="FAILED",
    reason="NonZeroExitCode",
    dependency="",
    nodes=2,
    elapsed="1:00",
    time_limit="1:00:00",
)


@pytest.mark.parametrize(
    ("cluster_name", "command"),
    [("training", "trainctl logs 17"), ("second", "trainctl logs 17 --cluster second")],
)
def test_a_failed_job_names_its_clusters_log(cluster_name: str, command: str) -> None:
    jobs = Jobs(queue=(), ended=(FAILED,), notes=())
    head, *_ = render_jobs(jobs, ended=True, cluster_name=cluster_name)
    assert head == "No job is waiting or running. These have ended:"
    (line,) = [each for each in render_jobs(jobs, ended=True, cluster_name=cluster_name) if "17" in each]
    assert line.endswith(f"its script failed: {command}")
