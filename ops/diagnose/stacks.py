"""Stacks of a cluster as CloudFormation reports them, and the events of their last operations."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ops.account.image_stacks import is_image_stack
from ops.account.stacks import FOUNDATIONS, cluster_stack_name, find_stacks

_BEGINNINGS = {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "IMPORT_IN_PROGRESS"}
_MAX_EVENTS = 1000


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
    pages = cloudformation.get_paginator("describe_stacks").paginate()
    described = [stack for page in pages for stack in page["Stacks"]]
    roots = {stack["StackId"] for stack in described if stack["StackName"] == cluster_name}
    for stack in described:
        if stack["StackName"] == cluster_name or stack.get("RootId") in roots:
            found[stack["StackName"]] = (stack["StackStatus"], False)
    lines = [
        f"{name}  {status}{'  termination protection on' if protected else ''}"
        for name, (status, protected) in found.items()
    ]
    return {name: status for name, (status, _) in found.items()}, "\n".join(lines)


def stack_events(stack_name: str, cloudformation: Any) -> str:
    """Return the events of a stack's last operation, the oldest first, one per line."""
    pages = cloudformation.get_paginator("describe_stack_events").paginate(StackName=stack_name)
    events = (event for page in pages for event in page["StackEvents"])
    last = list(itertools.islice(_of_the_last_operation(events), _MAX_EVENTS))
    return "\n".join(map(_line, reversed(last)))


def _of_the_last_operation(events: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for event in events:
        yield event
        is_stack = event.get("PhysicalResourceId") == event.get("StackId")
        if is_stack and event.get("ResourceStatus") in _BEGINNINGS:
            return


def _line(event: dict[str, Any]) -> str:
    reason = " ".join(str(event.get("ResourceStatusReason", "")).split())
    what = f"{event.get('ResourceStatus')} {event.get('ResourceType')} {event.get('LogicalResourceId')}"
    return f"{event['Timestamp']} {what}{f': {reason}' if reason else ''}"
