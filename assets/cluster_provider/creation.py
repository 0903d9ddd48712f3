"""Create: check first; then make the cluster, and wait for it.

The cluster is made by `step`, not by `check`: had on_event died with a stack begun, CDK's framework
would not pass on the Delete that follows, and nobody would own the cluster.
"""

from __future__ import annotations

import evidence
import library
import messages
import parent
import stages
from answers import ClusterNotFoundError, ClusterState, RefusedError, TransientError
from record import LostError, Record, SupersededError
from request import Request

_COMPLETE = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def check(request: Request, notes: Record) -> None:
    """Validate; nothing is made. Raises RuntimeError, TransientError, RefusedError."""
    notes.enter("validating")
    state = library.find(request.cluster_name)
    if state and not request.owns(state):
        raise RuntimeError(messages.not_ours(request.cluster_name))
    if state and state.status in _COMPLETE:
        notes.adopts = not notes.begun  # else CloudFormation sent the event twice
        notes.save()
        return
    if state and state.is_changing and not _is_going(state):
        return
    if state:
        replace(notes, state)
        return  # the library does not validate a name that is taken; _begin does, once it is free
    validate(request, notes)


def validate(request: Request, notes: Record) -> None:
    """Let the library validate, once. Raises TransientError, RefusedError."""
    if not notes.checked:
        would = library.check_create(request.cluster_name, request.config)
        notes.checked = True
        notes.enter("validated", "\n".join(would.validation))


def replace(notes: Record, state: ClusterState) -> None:
    """Note that this failed cluster of ours, kept by `cdk deploy --no-rollback`, has to go first."""
    notes.replaces = state.created
    notes.save()


def step(request: Request, notes: Record) -> bool:
    """Take the next step; whether the cluster stands. Raises RuntimeError when it failed."""
    name = request.cluster_name
    state = library.find(name)
    if state is None:
        if notes.begun:
            raise RuntimeError(messages.disappeared(name))
        _begin(request, notes)
        return False
    if not request.owns(state):
        raise RuntimeError(messages.not_ours(name))
    if _is_going(state) and not notes.replaces:
        replace(notes, state)
    if not notes.begun and not notes.replaces and library.stored_config(name) is None:
        # The answer to its creation was lost, and the library has removed what its stack is made from.
        replace(notes, state)
    if state.created == notes.replaces:
        return _remove(request, notes, state)
    notes.begun = True
    if state.is_changing:
        notes.enter(stage_of(name))
        return False
    if state.status not in _COMPLETE:
        raise evidence.failure(name, state)
    return True


def _begin(request: Request, notes: Record) -> None:
    name = request.cluster_name
    notes.replaces = None
    validate(request, notes)
    notes.enter("creating")
    try:
        library.create(name, request.config)
    except (TransientError, RefusedError):
        begun = library.find(name)
        if not begun or not request.owns(begun):
            raise
        return  # another poll was faster, or the answer was lost: the next step finds out
    notes.begun = True
    try:
        notes.save()
    except SupersededError:  # a Delete came meanwhile, and has found nothing to delete
        library.delete(name)
        raise
    except LostError:
        if not parent.awaits(request.kind, request.stack_id):  # that Delete has even ended
            library.delete(name)
            raise SupersededError(name) from None
        raise


def _is_going(state: ClusterState) -> bool:
    return state.status == "DELETE_IN_PROGRESS"


def _remove(request: Request, notes: Record, state: ClusterState) -> bool:
    notes.enter("removing the failed cluster of before")
    if state.status == "DELETE_FAILED" and notes.removing:
        raise evidence.failure(request.cluster_name, state)
    if not _is_going(state):
        evidence.save(request.cluster_name, state)
        library.delete(request.cluster_name)
        notes.removing = True
        notes.save()
    return False


def stage_of(name: str) -> str:
    """What the cluster's stack is busy with; without an answer, that it is."""
    try:
        return stages.latest(library.stack_events(name))
    except (ClusterNotFoundError, TransientError, RefusedError) as error:
        print(f"{name}: its stack's events are unknown: {error}")
        return "in progress"
