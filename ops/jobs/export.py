"""Submits a job that writes the weights of a run's checkpoint, by the workload's own export."""

from dataclasses import dataclass
from pathlib import PurePosixPath

from ops.account.head_node import HeadNode
from ops.jobs.lookup import cluster_option
from ops.jobs.request import JobRequest
from ops.jobs.submit import Submitted, submit
from ops.report.record import Run
from ops.report.source import read_on_cluster
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base

# The file that a workload exports by.
_BY = "exporting.py"
_LIMIT_MIN = 240


@dataclass(frozen=True, kw_only=True)
class Export:
    """An export that was submitted."""

    submitted: Submitted
    run: str
    """WORKLOAD/RUN."""
    step: int
    to: str
    """Folder on the cluster that the weights will be in."""


def export(
    run: str,
    head_node: HeadNode,
    *,
    step: int | None,
    to: str | None,
    nodes: int = 1,
    partition: str | None = None,
) -> Export:
    """Submit the export of a run's newest checkpoint, or of that of `step`.

    Args:
        run: job id, name or WORKLOAD/RUN.
        to: folder on the cluster; None for export-step-<step> in the run's folder.

    Raises:
        UsageError: there is no such run or checkpoint, or the folder is no path below the shared one.
        OpsError: the workload exports nothing, Slurm refused the job, or the cluster does not answer.
        botocore's errors.
    """
    shared = load_base().shared_dir
    if to is not None and (not PurePosixPath(to).is_relative_to(shared) or ".." in PurePosixPath(to).parts):
        raise UsageError(
            f"export: --out {to} is not a folder of the cluster's file system.\n"
            f"  type:    --out {shared}/checkpoints/NAME, which the bucket receives, too"
        )
    found = read_on_cluster(run, head_node)
    _check_workload(found, head_node)
    chosen = _choose(found, step, head_node)
    folder = to or f"{shared}/runs/{found.name}/export-step-{chosen:06d}"
    request = JobRequest(
        workload=found.workload,
        nodes=nodes,
        partition=partition,
        time_limit=str(_LIMIT_MIN),
        settings={
            "EXPORT_RUN": found.run,
            "EXPORT_STEP": str(chosen),
            "EXPORT_TO": folder,
            # The run itself keeps its starts, settings and outcome.
            "RUN_NAME": f"{found.run}-export-{chosen}",
        },
    )
    return Export(submitted=submit(request, head_node), run=found.name, step=chosen, to=folder)


def _check_workload(run: Run, head_node: HeadNode) -> None:
    shared = load_base().shared_dir
    if not head_node.can_read(f"{shared}/training/{run.workload}/{_BY}"):
        raise OpsError(
            f"Nothing exports runs of {run.workload}: its folder has no {_BY}.\n"
            f"  there:   {shared}/checkpoints/{run.name}, in the format that its README names"
        )


def _choose(run: Run, step: int | None, head_node: HeadNode) -> int:
    """Return the step of the checkpoint. Raises UsageError if the run has none of this step."""
    steps = [each.step for each in run.checkpoints]
    if not steps:
        raise UsageError(
            f"export: {run.name} has no complete checkpoint yet.\n"
            f"  type:    trainctl report {run.name}{cluster_option(head_node.cluster_name)}"
        )
    if step is None:
        return steps[-1]
    # Of many checkpoints, the record has the newest.
    if step not in steps and run.checkpoint_count == len(steps):
        raise UsageError(
            f"export: {run.name} has no checkpoint of step {step}.\n  allowed: {', '.join(map(str, steps))}"
        )
    return step
