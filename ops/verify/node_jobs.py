"""Runs a job for a check, shows its progress, cancels it after Ctrl-C or any error, and removes its files."""

import re
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from ops.account.head_node import HeadNode
from ops.jobs.follow import find_log, follow
from ops.jobs.lookup import find_job
from ops.jobs.request import RUN_NAME, JobRequest
from ops.jobs.slurm import Job
from ops.jobs.submit import submit
from ops.usage import OpsError
from ops.verify.interruption import held
from ops.verify.links import links_of, remove_versions
from ops.verify.scene import Say, Scene
from ops.verify.workloads import MOST_WAIT_MIN, settings_of
from training_cluster.catalog.families import load_base

# Lines of ranks begin with their numbers.
_STEP = re.compile(r"^(?:\d+: )?step \d+", re.MULTILINE)
_SCRIPT = "remove-run.sh"
_POLL_S, _sleep = 2.0, time.sleep
# A cancelled training may save a checkpoint for KillWait; its report follows.
_MOST_WAIT_S = load_base().kill_wait_s + 60.0


@dataclass
class JobSeen:
    """A job that ran for a check."""

    id: str
    run: str
    """Name in the form WORKLOAD/RUN."""
    submitted_s: float = field(default_factory=time.monotonic)
    text: str = ""
    began_s: float | None = None
    """Seconds from sbatch to the first line of its output."""
    stepped_s: float | None = None
    """Seconds from sbatch to the first line about a step."""
    ended: Job | None = None
    """State at its end; None if Slurm has forgotten it."""
    was_stopped: bool = False
    """True if it trained for long enough, and was cancelled."""

    def read(self, text: str) -> None:
        """Take the next part of the output."""
        now_s = time.monotonic() - self.submitted_s
        self.text += text
        if self.text and self.began_s is None:
            self.began_s = now_s
        if self.stepped_s is None and _STEP.search(self.text):
            self.stepped_s = now_s

    @property
    def trained_s(self) -> float:
        """Seconds since the first line about a step."""
        now_s = time.monotonic() - self.submitted_s
        return now_s - self.stepped_s if self.stepped_s is not None else 0.0

    @property
    def last_line(self) -> str:
        """Last line of the output that has words."""
        return next((line for line in reversed(self.text.splitlines()) if line.strip()), "no output")


def run_job(
    workload: str,
    scene: Scene,
    *,
    most_trained_s: float | None = None,
    settings: Mapping[str, str] | None = None,
) -> JobSeen:
    """Submit a job on scene.nodes nodes, and wait for its end.

    Args:
        workload: a folder of the training scripts.
        most_trained_s: the job is cancelled this long after its first step; None: never.
        settings: settings of the job; by default those with which it needs neither download nor bucket.

    Raises:
        OpsError: the job cannot run, or Slurm refused it.
        botocore's errors.
    """
    head_node, name = scene.head_node, f"verify-{uuid.uuid4().hex[:8]}"
    request = JobRequest(
        workload=workload,
        nodes=scene.nodes,
        partition=scene.partition,
        settings={**(settings or settings_of(workload)), RUN_NAME: name},
        time_limit=str(scene.limit_min),
        deadline=f"now+{scene.limit_min + MOST_WAIT_MIN}minutes",
    )
    seen: JobSeen | None = None
    try:
        # An interruption between sbatch and its answer would leave a job without an id to cancel.
        with held():
            seen = JobSeen(id=submit(request, head_node).job_id, run=f"{workload}/{name}")
            scene.jobs.append((seen.id, seen.run))
        scene.say(f"job {seen.id}: {workload} on {scene.nodes} nodes; Ctrl-C cancels it")
        _watch(seen, scene, most_trained_s)
    except BaseException:
        if seen is not None:
            _cancel(seen.id, head_node, scene.say)
        raise
    return seen


def _watch(seen: JobSeen, scene: Scene, most_trained_s: float | None) -> None:
    def read(text: str) -> None:
        seen.read(text)
        if most_trained_s is not None and not seen.was_stopped and seen.trained_s >= most_trained_s:
            seen.was_stopped = True
            scene.say(f"job {seen.id} has trained for {most_trained_s / 60:g} minutes, and is cancelled")
            scene.head_node.run("scancel", seen.id)

    seen.ended = follow(find_log(seen.id, scene.head_node), write=read, say=scene.say)


def _cancel(job_id: str, head_node: HeadNode, say: Say) -> None:
    say(f"cancelling job {job_id}")
    try:
        head_node.run("scancel", job_id)
    except BaseException:
        say(f"not cancelled: trainctl cancel {job_id}")
        raise


def remove_runs(scene: Scene, *, keep_output: bool) -> None:
    """Remove runs, checkpoints and output of the jobs that were started; name what could not be removed."""
    for job_id, run in scene.jobs:
        try:
            _wait_for_end(job_id, scene)
            _remove(job_id, run, scene, keep_output=keep_output)
        except BaseException as error:
            scene.say(f"not removed: runs/{run} and checkpoints/{run} of job {job_id}; remove them by hand")
            if not isinstance(error, OpsError | BotoCoreError | ClientError):
                raise


def _wait_for_end(job_id: str, scene: Scene) -> None:
    """Wait until a job writes nothing any more. Raises OpsError if it does not end, and botocore's errors."""
    deadline = time.monotonic() + _MOST_WAIT_S
    while (job := find_job(job_id, scene.head_node)) and not job.has_ended:
        if time.monotonic() > deadline:
            raise OpsError(f"job {job_id} did not end")
        _sleep(_POLL_S)


def _remove(job_id: str, run: str, scene: Scene, *, keep_output: bool) -> None:
    shared = load_base().shared_dir
    scene.head_node.run_script(_SCRIPT, shared, run, *([] if keep_output else [job_id]))
    if keep_output:
        scene.say(f"kept: trainctl logs {job_id}, since a check of the nodes did not hold")
    for link in links_of(scene):
        bucket, _, prefix = link["DataRepositoryPath"].removeprefix("s3://").partition("/")
        if link.get("S3", {}).get("AutoExportPolicy"):
            remove_versions(scene.client("s3"), bucket, f"{prefix.rstrip('/')}/{run}/")
