"""Delete: this stack's own cluster only; a failed cluster's logs are saved first."""

from __future__ import annotations

import failure_logs
import library
import messages
import parent_stack
from cluster_state import ClusterState
from errors import ClusterNotFoundError
from record import Record
from request import Request

_WORKING = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def check(_request: Request, _record: Record) -> None:
    """Accept the request: a deletion is never refused."""


def step(request: Request, record: Record) -> bool:
    """Take the next step; return True once the cluster no longer exists. Raises RuntimeError if it failed."""
    found = _find(request)
    if found is None:
        return True
    name, state = found
    if state.status in _WORKING and parent_stack.cleans_up(request.stack_id):
        # The update replaced a failed cluster by this one, which has the same id and must stay.
        print(f"{name} is kept: CloudFormation cleans up after the update that created it")
        return True
    if state.status == "DELETE_IN_PROGRESS":
        record.accepted = True
        record.enter("deleting")
        return False
    if state.status == "DELETE_FAILED" and record.accepted:
        raise failure_logs.failure(name, state)
    if state.status not in _WORKING:
        record.enter("saving the failure's logs")
        failure_logs.save(name, state)
    record.enter("deleting")
    try:
        library.delete(name)
    except ClusterNotFoundError:
        return True
    record.accepted = True
    record.save()
    return False


def _find(request: Request) -> tuple[str, ClusterState] | None:
    """Find this stack's cluster by the physical id or, if CloudFormation generated it, by the properties."""
    for name in dict.fromkeys([request.cluster_name, request.new_name]):
        state = library.find(name)
        if state and request.owns(state):
            return name, state
        if state:
            print(messages.not_ours(name))
    return None
