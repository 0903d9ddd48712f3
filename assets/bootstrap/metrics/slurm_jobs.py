"""Samples of Slurm's jobs, and slurmctld's own figures, by sdiag."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator

from command import output_of
from slurm import Job
from textfile import Sample

_LONGEST_NAME = 64


def job_samples(jobs: Iterable[Job]) -> Iterator[Sample]:
    """Yield the numbers of jobs, the longest waits, and the facts of each running job."""
    jobs = list(jobs)
    kinds = Counter((job.state.lower(), job.user, job.account, job.partition) for job in jobs)
    for (state, user, account, partition), number in kinds.items():
        labels = {"state": state, "user": user, "account": account, "partition": partition}
        yield Sample("slurm_jobs", number, labels)
    now = time.time()
    waits: dict[tuple[str, str], float] = {}
    for job in jobs:
        if job.state == "PENDING":
            kind = (job.partition, job.reason or "None")
            waits[kind] = max(waits.get(kind, 0.0), now - job.submitted)
        elif job.state == "RUNNING":
            yield from _running(job)
    for (partition, reason), wait_s in waits.items():
        yield Sample("slurm_queue_wait_seconds", wait_s, {"partition": partition, "reason": reason})


def _running(job: Job) -> Iterator[Sample]:
    labels = {"job": job.job_id, "user": job.user, "account": job.account, "partition": job.partition}
    yield Sample("slurm_job_info", 1, {**labels, "name": job.name[:_LONGEST_NAME]})
    yield Sample("slurm_job_nodes", job.nodes, labels)
    yield Sample("slurm_job_start_seconds", job.started, labels)
    yield Sample("slurm_job_wait_seconds", max(0.0, job.started - job.submitted), labels)


# Title of a part of sdiag's output (None: its beginning), the line's words, the figure's name, its unit.
_FIGURES = (
    (None, "Server thread count", "server_threads", 1.0),
    (None, "Agent queue size", "agent_queue", 1.0),
    (None, "DBD Agent queue size", "database_queue", 1.0),
    ("Main schedule", "Last cycle", "main_last_cycle_seconds", 1e-6),
    ("Main schedule", "Mean cycle", "main_mean_cycle_seconds", 1e-6),
    ("Main schedule", "Last queue length", "main_queue", 1.0),
    ("Backfilling", "Last cycle", "backfill_last_cycle_seconds", 1e-6),
    ("Backfilling", "Last depth cycle", "backfill_last_depth", 1.0),
)
_TITLE = re.compile(r"^(Main schedule|Backfilling) stat")
_VALUE = re.compile(r"^\s*([^:]+):\s+(\d+)$")


def sdiag_samples() -> Iterator[Sample]:
    """Yield slurmctld's figures; older versions lack some."""
    part = None
    for line in output_of("sdiag").splitlines():
        if title := _TITLE.match(line):
            part = title[1]
        elif line.startswith("Remote Procedure Call"):
            return
        elif value := _VALUE.match(line):
            for where, words, name, unit in _FIGURES:
                if (where, words) == (part, value[1]):
                    yield Sample("slurm_sdiag", int(value[2]) * unit, {"figure": name})
