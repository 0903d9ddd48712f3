"""What CloudFormation and Slurm report of the cluster and the job, before any log is searched."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ops.account.stacks import cluster_stack_name
from ops.diagnose.stacks import SUCCESSES, StackEvents
from ops.diagnose.texts import State
from ops.diagnose.times import shown
from ops.jobs.lookup import Jobs, cluster_option
from ops.jobs.slurm import QueuedJob

# States of an ended job that are no failure.
_WANTED = frozenset({"COMPLETED", "CANCELLED", "PREEMPTED"})


@dataclass(frozen=True, kw_only=True)
class AskedJob:
    """The job that the user asked about."""

    id: str
    sentence: str
    """Its state."""
    is_good: bool
    """True if it has completed."""
    submitted: datetime.datetime | None
    """None if Slurm has forgotten the job, or has requeued it."""


def state_of(
    cluster_name: str,
    *,
    statuses: Mapping[str, str],
    events: StackEvents | None,
    gone: str,
    asked: AskedJob | None,
    jobs: Jobs | None,
) -> State:
    """Return what to say first.

    Args:
        statuses: of the stacks that concern the cluster.
        events: of the cluster's own stack.
        gone: sentence that there is no such cluster; empty if there is one.
        asked: the job that the user asked about.
        jobs: if the user asked about no job: the jobs of the cluster, None if they are unknown.
    """
    if asked and asked.is_good:
        return State(sentences=(asked.sentence,), is_good=True, earlier="In its log, although it completed:")
    own = cluster_stack_name(cluster_name)
    of_stacks = (gone,) if gone else tuple(_stack_sentences(statuses, own, events))
    failed = [job for job in jobs.ended if job.state not in _WANTED] if jobs else []
    of_jobs = (_job_sentence(failed, cluster_name),) if jobs else ()
    is_well = own in statuses and set(statuses.values()) <= SUCCESSES
    return State(
        sentences=(*((asked.sentence,) if asked else ()), *of_stacks, *of_jobs),
        is_good=is_well and jobs is not None and not failed,
        earlier=_earlier(events, gone, asked),
    )


def _stack_sentences(statuses: Mapping[str, str], own: str, events: StackEvents | None) -> Iterator[str]:
    """Yield the status of the cluster's stack, and that of each other stack that did not succeed."""
    if own in statuses:
        yield f"{own} is {statuses[own]}{f' since {shown(events.since)}' if events and events.since else ''}."
    for name, status in statuses.items():
        if name != own and status not in SUCCESSES:
            yield f"{name} is {status}."


def _job_sentence(failed: Sequence[QueuedJob], cluster_name: str) -> str:
    command = f"trainctl diagnose{cluster_option(cluster_name)} --job"
    if not failed:
        return f"No job that Slurm lists has failed; for one that ended earlier: {command} ID"
    last, number = failed[0], f"{len(failed)} jobs have" if len(failed) > 1 else "A job has"
    return f"{number} failed, the last is {last.id} ({last.workload}, {last.state}): {command} {last.number}"


def _earlier(events: StackEvents | None, gone: str, asked: AskedJob | None) -> str:
    if gone:
        return "Earlier, of a cluster that no longer exists:"
    if asked and asked.submitted:
        return f"Earlier than job {asked.id}, or fixed since:"
    if events and events.succeeded:
        return f"Earlier, fixed since (a deploy succeeded at {shown(events.succeeded)}):"
    return "Earlier, of a former cluster of this name:"
