"""Delete: our own cluster only; save what shows a failure, then delete, and wait until it is gone."""

from __future__ import annotations

import evidence
import library
import messages
import parent
from answers import ClusterNotFoundError, ClusterState
from record import Record
from request import Request

_WORKS = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def check(_request: Request, _notes: Record) -> None:
    """Nothing may stop a deletion."""


def step(request: Request, notes: Record) -> bool:
    """Take the next step; whether nothing of ours is left. Raises RuntimeError when it cannot be deleted."""
    found = _find(request)
    if found is None:
        return True
    name, state = found
    if state.status in _WORKS and parent.cleans_up(request.stack_id):
        # An update has replaced a failed cluster by this one: both have the same id, and this one stays.
        print(f"{name} stands and stays: the update that made it is being cleaned up")
        return True
    if state.status == "DELETE_IN_PROGRESS":
        notes.begun = True
        notes.enter("deleting")
        return False
    if state.status == "DELETE_FAILED" and notes.begun:
        raise evidence.failure(name, state)
    if state.status not in _WORKS:
        notes.enter("saving what shows the failure")
        evidence.save(name, state)
    notes.enter("deleting")
    try:
        library.delete(name)
    except ClusterNotFoundError:
        return True
    notes.begun = True
    notes.save()
    return False


def _find(request: Request) -> tuple[str, ClusterState] | None:
    """The cluster of this stack, by the physical id or, if CloudFormation made that up, by its properties."""
    for name in dict.fromkeys([request.cluster_name, request.new_name]):
        state = library.find(name)
        if state and request.owns(state):
            return name, state
        if state:
            print(messages.not_ours(name))
    return None
