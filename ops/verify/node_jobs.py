"""Runs a job for a check, shows its progress, and cancels it after Ctrl-C or any error."""

import re
import time
import uuid
from dataclasses import dataclass, field

from ops.account.head_node import HeadNode
from ops.jobs.follow import find_log, follow
from ops.jobs.slurm import Job
from ops.jobs.submit import RUN_NAME, JobRequest, submit
from ops.verify.interruption import held
from ops.verify.scene import Say, Scene
from ops.verify.workloads import LIMIT_MIN, MOST_WAIT_MIN, settings_of

# Lines of ranks begin with their numbers.
_STEP = re.compile(r"^(?:\d+: )?step \d+", re.MULTILINE)


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


def run_job(workload: str, scene: Scene, *, most_trained_s: float | None = None) -> JobSeen:
    """Submit a job on scene.nodes nodes, and wait for its end.

    Args:
        workload: a folder of the training scripts.
        most_trained_s: the job is cancelled this long after its first step; None: never.

    Raises:
        OpsError: the job cannot run, or Slurm refused it.
        botocore's errors.
    """
    head_node, name = scene.head_node, f"verify-{uuid.uuid4().hex[:8]}"
    request = JobRequest(
        workload=workload,
        nodes=scene.nodes,
        settings={**settings_of(workload), RUN_NAME: name},
        time_limit=str(LIMIT_MIN),
        deadline=f"now+{LIMIT_MIN + MOST_WAIT_MIN}minutes",
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
