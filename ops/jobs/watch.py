"""What `trainctl logs --follow` and `trainctl submit --follow` do: watch a job to its end."""

from __future__ import annotations

import typer

from ops.account.head_node import HeadNode
from ops.account.options import with_account
from ops.jobs.follow import find_log, follow, show_tail
from ops.jobs.lookup import on

_INTERRUPTED = 130


def watch(job_id: str, head_node: HeadNode, *, lines: int) -> int:
    """Show a job's output on stdout and what becomes of the job on stderr.

    Args:
        lines: how many lines of what is there already to show; 0: all.

    Returns:
        Exit code: 0 for a job that ended well, 1 for another, 130 for a watching that was interrupted.

    Raises OpsError and botocore's errors.
    """
    try:
        log = find_log(job_id, head_node)
        show_tail(log, lines, _write)
        job = follow(log, write=_write, say=_say)
    except KeyboardInterrupt:
        end = f"trainctl cancel {job_id}{on(head_node.cluster_name)}"
        _say(f"\nThe watching ended, job {job_id} did not. To end it: {end}")
        return _INTERRUPTED
    if job is None:
        _say(f"Slurm has forgotten job {job_id}: how it ended stands in its output, if anywhere.")
        return 0
    _say(f"Job {job_id} ended: {job.ending}")
    return 0 if job.state == "COMPLETED" else 1


def _write(text: str) -> None:
    typer.echo(text, nl=False)


def _say(line: str) -> None:
    typer.echo(with_account(line), err=True)
