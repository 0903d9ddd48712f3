"""State of the cluster and the job by CloudFormation and Slurm, before any log is searched."""

import datetime
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ops.account.stacks import cluster_stack_name
from ops.diagnose.stacks import SUCCESSES, StackEvents
from ops.diagnose.texts import State
from ops.diagnose.times import shown
from ops.jobs.lookup import cluster_option
from ops.jobs.nodes import Partition, UnavailableNodes
from ops.jobs.reasons import passes, plain_reason
from ops.jobs.slurm import QueuedJob


@dataclass(frozen=True, kw_only=True)
class SlurmState:
    """The jobs, partitions and nodes of the cluster."""

    failed: tuple[QueuedJob, ...]
    """Jobs that failed, the newest first."""
    queue: tuple[QueuedJob, ...]
    partitions: tuple[Partition, ...]
    unavailable: tuple[UnavailableNodes, ...]
    cluster_name: str

    def complaints(self) -> Iterator[str]:
        """Yield what is not well, with the command that tells more."""
        option = cluster_option(self.cluster_name)
        diagnose = f"trainctl diagnose{option} --job"
        if self.failed:
            last, number = self.failed[0], len(self.failed)
            jobs = f"{number} jobs have" if number > 1 else "A job has"
            named = f"{last.id} ({last.workload}, {last.state})"
            yield f"{jobs} failed, the last is {named}: {diagnose} {last.id}"
        stuck = [job for job in self.queue if job.waits and not passes(job.reason)]
        if stuck:
            job, number = stuck[0], len(stuck)
            jobs = f"{number} jobs do" if number > 1 else "A job does"
            why = plain_reason(job.reason, dependency=job.dependency)
            # An array whose tasks wait is 6_[1-9], which no command takes.
            id_ = job.id.partition("_[")[0]
            yield f"{jobs} not start, the first is {id_} ({job.workload}; {why}): {diagnose} {id_}"
        for each in self.partitions:
            if each.availability != "up":
                closed = f"Partition {each.name} is {each.availability} and starts no jobs"
                yield f"{closed}: trainctl status{option}"
        if self.unavailable:
            first, number = self.unavailable[0], len(self.unavailable) - 1
            more = f", and {number} more" if number else ""
            nodes = f"{first.names} ({first.state}: {first.reason}){more}"
            yield f"Nodes accept no jobs, {nodes}: trainctl status{option}"


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
    slurm: SlurmState | None,
) -> State:
    """Return what to say first.

    Args:
        statuses: of the stacks that concern the cluster.
        events: of the cluster's own stack.
        gone: sentence that there is no such cluster; empty if there is one.
        asked: the job that the user asked about.
        slurm: what Slurm lists; None if the user asked about a job, or if it is unknown.
    """
    if asked and asked.is_good:
        return State(sentences=(asked.sentence,), is_good=True, earlier="In its log, although it completed:")
    own = cluster_stack_name(cluster_name)
    complaints = tuple(slurm.complaints()) if slurm else ()
    is_well = own in statuses and set(statuses.values()) <= SUCCESSES
    return State(
        sentences=(
            *((asked.sentence,) if asked else ()),
            *((gone,) if gone else ()),
            *_stack_sentences(statuses, own, events),
            *complaints,
            *((_no_failed_job(cluster_name),) if slurm and not slurm.failed else ()),
        ),
        is_good=is_well and slurm is not None and not complaints,
        earlier=_earlier(events, gone, asked),
    )


def _stack_sentences(statuses: Mapping[str, str], own: str, events: StackEvents | None) -> Iterator[str]:
    """Yield the status of the cluster's stack, and of each other stack that did not succeed."""
    if own in statuses:
        yield f"{own} is {statuses[own]}{f' since {shown(events.since)}' if events and events.since else ''}."
    for name, status in statuses.items():
        if name != own and status not in SUCCESSES:
            yield f"{name} is {status}."


def _no_failed_job(cluster_name: str) -> str:
    command = f"trainctl diagnose{cluster_option(cluster_name)} --job"
    return f"No job that Slurm lists has failed; for one that ended earlier: {command} ID"


def _earlier(events: StackEvents | None, gone: str, asked: AskedJob | None) -> str:
    if gone:
        return "Earlier, of a cluster that no longer exists:"
    if asked and asked.submitted:
        return f"Earlier than job {asked.id}, or than the last successful deploy:"
    if events and events.succeeded:
        return f"Earlier; a deploy has succeeded since, at {shown(events.succeeded)}:"
    return "Earlier, of a former cluster of this name:"
