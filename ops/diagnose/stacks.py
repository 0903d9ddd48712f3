"""Stacks of a cluster as CloudFormation reports them, and the events of their last operations."""

import datetime
import itertools
from dataclasses import dataclass
from typing import Any

from ops.account.image_stacks import is_image_stack
from ops.account.session import every
from ops.account.stacks import FOUNDATIONS, cluster_stack_name, find_stacks

SUCCESSES = frozenset({"CREATE_COMPLETE", "UPDATE_COMPLETE", "IMPORT_COMPLETE"})
"""Statuses of a stack whose last operation succeeded."""
_BEGINNINGS = {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "IMPORT_IN_PROGRESS"}
_MAX_EVENTS = 1000


@dataclass(frozen=True, kw_only=True)
class StackEvents:
    """State of a stack, read from its events."""

    text: str
    """The events of the last operation, the oldest first, one per line."""
    since: datetime.datetime | None
    """Time at which the stack got its status."""
    succeeded: datetime.datetime | None
    """Time at which the stack's last successful operation ended."""
    created: datetime.datetime | None
    """Time at which the stack's creation began; None if the events that were read do not include it."""


def stack_statuses(cluster_name: str, cloudformation: Any) -> tuple[dict[str, str], str]:
    """Return the status of each stack that concerns a cluster, by name, and the same as a text.

    ParallelCluster's own stack has the cluster's name, and nested stacks.
    """
    ours, _ = find_stacks(cloudformation)
    own = cluster_stack_name(cluster_name)
    found = {
        name: (stack.status, stack.is_protected)
        for name, stack in ours.items()
        if name in (*FOUNDATIONS, own) or is_image_stack(name)
    }
    described = [*every(cloudformation, "describe_stacks", "Stacks")]
    roots = {stack["StackId"] for stack in described if stack["StackName"] == cluster_name}
    for stack in described:
        if stack["StackName"] == cluster_name or stack.get("RootId") in roots:
            found[stack["StackName"]] = (stack["StackStatus"], False)
    lines = [
        f"{name}  {status}{'  termination protection on' if protected else ''}"
        for name, (status, protected) in found.items()
    ]
    return {name: status for name, (status, _) in found.items()}, "\n".join(lines)


def read_events(stack_name: str, cloudformation: Any) -> StackEvents:
    """Read a stack's events back to the beginning of its last operation, and to its last success."""
    events = every(cloudformation, "describe_stack_events", "StackEvents", StackName=stack_name)
    last: list[dict[str, Any]] = []
    since = succeeded = created = None
    is_last = True
    for event in itertools.islice(events, _MAX_EVENTS):
        status = event.get("ResourceStatus")
        if is_last:
            last.append(event)
        if event.get("PhysicalResourceId") == event.get("StackId"):
            since = since or event["Timestamp"]
            is_last = is_last and status not in _BEGINNINGS
            succeeded = succeeded or (event["Timestamp"] if status in SUCCESSES else None)
            created = event["Timestamp"] if status == "CREATE_IN_PROGRESS" else created
        if succeeded and not is_last:
            break
    text = "\n".join(map(_line, reversed(last)))
    return StackEvents(text=text, since=since, succeeded=succeeded, created=created)


def _line(event: dict[str, Any]) -> str:
    reason = " ".join(str(event.get("ResourceStatusReason", "")).split())
    what = f"{event.get('ResourceStatus')} {event.get('ResourceType')} {event.get('LogicalResourceId')}"
    return f"{event['Timestamp']} {what}{f': {reason}' if reason else ''}"
