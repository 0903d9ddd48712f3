"""Watches a job to its end, for `trainctl logs --follow` and `trainctl submit --follow`."""

import typer

from ops.account.head_node import HeadNode
from ops.account.region_and_profile import with_account
from ops.jobs.follow import find_log, follow, show_tail
from ops.jobs.lookup import cluster_option

INTERRUPTED = 130
"""Exit code after Ctrl-C."""


def watch(job_id: str, head_node: HeadNode, *, lines: int, quiet: bool = False) -> int:
    """Show a job's output on stdout, and changes of its state on stderr.

    Args:
        lines: number of existing lines to show; 0: all.
        quiet: show no output of the job.

    Returns:
        Exit code: 0 for a job that succeeded, 1 for another, 130 after Ctrl-C.

    Raises OpsError and botocore's errors.
    """
    write = _drop if quiet else _write
    try:
        log = find_log(job_id, head_node)
        show_tail(log, lines, write)
        job = follow(log, write=write, say=_say)
    except KeyboardInterrupt:
        end = f"trainctl cancel {job_id}{cluster_option(head_node.cluster_name)}"
        _say(f"\nJob {job_id} continues. To end it: {end}")
        return INTERRUPTED
    if job is None:
        _say(f"Slurm has forgotten job {job_id}: look for its result in its output.")
        return 0
    _say(f"Job {job_id} ended: {job.ending}")
    return 0 if job.state == "COMPLETED" else 1


def _drop(_text: str) -> None:
    pass


def _write(text: str) -> None:
    typer.echo(text, nl=False)


def _say(line: str) -> None:
    typer.echo(with_account(line), err=True)
