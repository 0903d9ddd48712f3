"""Create: check the config, create the cluster, and wait for it.

`step` creates the cluster, not `check`: if on_event died after it began a stack, CDK's framework would not
pass on the Delete that follows, and no stack would own the cluster.
"""

from __future__ import annotations

import failure_logs
import library
import messages
import parent_stack
import stack_stage
from cluster_state import ClusterState
from errors import ClusterNotFoundError, RefusedError, TransientError
from record import LostError, Record, SupersededError
from request import Request

_COMPLETE = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def check(request: Request, record: Record) -> None:
    """Validate the cluster without creating it. Raises RuntimeError, TransientError, RefusedError."""
    record.enter("validating")
    state = library.find(request.cluster_name)
    if state and not request.owns(state):
        raise RuntimeError(messages.not_ours(request.cluster_name))
    if state and state.status in _COMPLETE:
        record.adopts = not record.accepted  # else CloudFormation sent the event twice
        record.save()
        return
    if state and state.is_changing and not _is_being_deleted(state):
        return
    if state:
        mark_for_replacement(record, state)
        return  # the library validates no name that is in use; _begin validates once the name is free
    validate(request, record)


def validate(request: Request, record: Record) -> None:
    """Let the library validate the config, once. Raises TransientError, RefusedError."""
    if not record.checked:
        dry_run = library.check_create(request.cluster_name, request.config)
        record.checked = True
        record.enter("validated", "\n".join(dry_run.validation))


def mark_for_replacement(record: Record, state: ClusterState) -> None:
    """Record that this stack's failed cluster, kept by `cdk deploy --no-rollback`, must be deleted first."""
    record.replaces = state.created
    record.save()


def step(request: Request, record: Record) -> bool:
    """Take the next step; return True once the cluster works. Raises RuntimeError when it failed."""
    name = request.cluster_name
    state = library.find(name)
    if state is None:
        if record.accepted:
            raise RuntimeError(messages.disappeared(name))
        _begin(request, record)
        return False
    if not request.owns(state):
        raise RuntimeError(messages.not_ours(name))
    if _is_being_deleted(state) and not record.replaces:
        mark_for_replacement(record, state)
    if not record.accepted and not record.replaces and library.stored_config(name) is None:
        # The answer to its creation was lost, and the library has removed the files of the cluster's stack.
        mark_for_replacement(record, state)
    if state.created == record.replaces:
        return _remove(request, record, state)
    record.accepted = True
    if state.is_changing:
        record.enter(stage_of(name))
        return False
    if state.status not in _COMPLETE:
        raise failure_logs.failure(name, state)
    return True


def _begin(request: Request, record: Record) -> None:
    name = request.cluster_name
    record.replaces = None
    validate(request, record)
    record.enter("creating")
    try:
        library.create(name, request.config)
    except (TransientError, RefusedError):
        begun = library.find(name)
        if not begun or not request.owns(begun):
            raise
        return  # another poll created it, or the answer was lost: the next step finds the stack
    record.accepted = True
    try:
        record.save()
    except SupersededError:  # a Delete began meanwhile, and found no cluster to delete
        library.delete(name)
        raise
    except LostError:
        if not parent_stack.awaits(request.kind, request.stack_id):  # a Delete began and ended meanwhile
            library.delete(name)
            raise SupersededError(name) from None
        raise


def _is_being_deleted(state: ClusterState) -> bool:
    return state.status == "DELETE_IN_PROGRESS"


def _remove(request: Request, record: Record, state: ClusterState) -> bool:
    record.enter("removing the failed former cluster")
    if state.status == "DELETE_FAILED" and record.removing:
        raise failure_logs.failure(request.cluster_name, state)
    if not _is_being_deleted(state):
        failure_logs.save(request.cluster_name, state)
        library.delete(request.cluster_name)
        record.removing = True
        record.save()
    return False


def stage_of(name: str) -> str:
    """Return the stage of the cluster's stack; `in progress` if AWS does not answer."""
    try:
        return stack_stage.current(library.stack_events(name))
    except (ClusterNotFoundError, TransientError, RefusedError) as error:
        print(f"{name}: its stack's events are unknown: {error}")
        return "in progress"
