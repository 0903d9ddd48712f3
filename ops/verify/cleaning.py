"""Removes what the jobs of `trainctl verify` wrote on Lustre and in the bucket."""

import time

from botocore.exceptions import BotoCoreError, ClientError

from ops.jobs.lookup import find_job
from ops.usage import OpsError
from ops.verify.links import links_of, remove_versions
from ops.verify.scene import Scene
from training_cluster.catalog.families import load_base

_SCRIPT = "remove-run.sh"
_POLL_S, _sleep = 2.0, time.sleep
# A cancelled training may save a checkpoint for KillWait; its report follows.
_MOST_WAIT_S = load_base().kill_wait_s + 60.0


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
