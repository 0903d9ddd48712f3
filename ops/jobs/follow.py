"""Follows a job: its output as it grows, the reasons why it waits, and its end."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.head_node import HeadNode
from ops.jobs.lookup import cluster_option, find_job
from ops.jobs.output import Output
from ops.jobs.reasons import plain_reason
from ops.jobs.request import output_path
from ops.jobs.slurm import Job
from ops.usage import OpsError

POLL_S = 2.0
# The poll interval grows to this while nothing happens: the head node stores each command for 14 days.
_LAST_POLL_S = 15.0
# A single lost answer is normal; this many in a row are an error.
_MAX_LOST = 10
Write = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Log:
    """A job, and the files of its output."""

    job_id: str
    job: Job | None
    """None if Slurm has forgotten the job."""
    output: Output


def find_log(job_id: str, head_node: HeadNode) -> Log:
    """Find a job's output, even if Slurm has forgotten the job. Raises OpsError and botocore's errors."""
    job = find_job(job_id, head_node)
    if job and not job.output:
        raise OpsError(f"Job {job_id} has no output file: it is not a batch job.")
    output = Output(job.output if job else _former_output(job_id, head_node), head_node)
    if job is None and output.size() is None:
        raise OpsError(
            f"Slurm does not know job {job_id}, or has forgotten it, and {output.path} does not exist.\n"
            f"  type:   trainctl jobs --all{cluster_option(head_node.cluster_name)}"
        )
    return Log(job_id=job_id, job=job, output=output)


def _former_output(job_id: str, head_node: HeadNode) -> str:
    """Return where submit-once.sh wrote the output of a job that Slurm has forgotten."""
    user = head_node.run("id", "-un", reads_only=True).strip()
    own = output_path(job_id, f"users/{user}/logs")
    return own if head_node.can_read(own) else output_path(job_id)


def show_tail(log: Log, lines: int, write: Write) -> None:
    """Write the last lines of a job's output, all of them for 0. Raises OpsError and botocore's errors."""
    if lines:
        write(log.output.read_tail(lines))
        return
    for text in log.output.read_on():
        write(text)


def follow(log: Log, *, write: Write, say: Write) -> Job | None:
    """Write a job's output as it grows, until the job has ended; a requeued job is still followed.

    Args:
        log: reading continues at the offset of its output.
        write: receives the job's output.
        say: receives lines about the job: the reason why it waits, that it was requeued.

    Returns:
        The ended job; None if Slurm has forgotten it.

    Raises OpsError and botocore's errors.
    """
    said, lost, pause_s = "", 0, POLL_S
    while True:
        try:
            look = log.output.look(log.job_id)
        except (OpsError, BotoCoreError, ClientError) as error:
            lost += 1
            if lost == _MAX_LOST:
                raise
            say(f"No answer, asking again: {str(error).partition(chr(10))[0]}")
            time.sleep(pause_s)
            continue
        lost = 0
        write(look.text)
        if look.is_behind:
            continue
        if look.job is None or look.job.has_ended:
            return look.job
        now = state_line(look.job)
        if now != said and (said or look.job.state != "RUNNING"):
            say(now)
        pause_s = POLL_S if look.text or now != said else min(pause_s * 1.5, _LAST_POLL_S)
        said = now
        time.sleep(pause_s)


def state_line(job: Job) -> str:
    """Return the state of a job in one line."""
    again = f", after {job.restarts} restart(s)" if job.restarts else ""
    if job.waits:
        why = plain_reason(job.reason, dependency=job.dependency)
        return f"Job {job.id} waits{again}: {why}"
    if job.state == "CONFIGURING":
        return f"Job {job.id} has its nodes{again}; they are starting"
    return f"Job {job.id} is {job.state}{again}"
