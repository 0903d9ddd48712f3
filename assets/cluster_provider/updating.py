"""Update: check what the library would do; stop the fleet if need be, update, start it again.

A rollback is an Update as well, back to the former config, and a stack whose rollback fails is stuck.
So a rollback undoes what it can without harm; where it cannot (nodes run jobs now), the cluster stays
as it is, which the provider's log and record say, and the next deploy goes on from there.
"""

from __future__ import annotations

import creation
import evidence
import fleet
import kept
import library
import messages
import parent
from answers import ClusterNotFoundError, ClusterState, RefusedError, TransientError
from record import Record
from request import Request


def check(request: Request, notes: Record) -> None:
    """Refuse another name. All else is for `step`: a rollback must not fail for a call that was throttled.

    Raises:
        RuntimeError: it is refused.
    """
    if request.new_name != request.cluster_name:
        raise RuntimeError(messages.renamed(request.cluster_name, request.new_name))
    notes.enter("validating")


def step(request: Request, notes: Record) -> bool:
    """Take the next step; whether the update has ended and the fleet is as before.

    Raises:
        RuntimeError: it failed, or cannot be; the fleet is as before, or was asked to be.
    """
    name, is_rollback = request.cluster_name, parent.rolls_back(request.stack_id)
    state = library.find(name)
    if is_rollback and (state is None or not request.owns(state) or _never_stood(state)):
        notes.enter("left as it is", f"There is no cluster {name} of this stack to roll back.")
        return True
    if state is None or notes.replaces:
        return creation.step(request, notes)  # somebody deleted it by hand: this deploy makes it again
    if _never_stood(state) and not notes.begun:
        creation.replace(notes, state)
        return creation.step(request, notes)
    if not request.owns(state):
        raise RuntimeError(messages.not_ours(name))
    if state.is_changing:
        notes.enter(creation.stage_of(name))
        return False
    if notes.begun:
        return _end(notes, state, is_rollback=is_rollback)
    try:
        _begin(request, notes, state)
    except (RuntimeError, RefusedError) as error:
        if not is_rollback:
            _restart(notes)
            raise
        why = messages.refusal(name, error) if isinstance(error, RefusedError) else str(error)
        notes.begun = notes.unchanged = True
        notes.enter("left as it is", f"The rollback left {name} as it is: {why}")
        notes.save()
    return False


def _never_stood(state: ClusterState) -> bool:
    return state.status == "CREATE_FAILED"


def _begin(request: Request, notes: Record, state: ClusterState) -> None:
    """Start the update, or what it takes first. Raises RuntimeError and RefusedError when it cannot be."""
    name = request.cluster_name
    if fleet.is_stopping(notes):
        return
    try:
        if not notes.checked:
            _check_kept(request)
            would = library.check_update(name, request.update_config)
            if would is None:
                notes.unchanged = True
            else:
                notes.enter("updating", "\n".join([*would.changes, *would.validation]))
        if not notes.unchanged:
            notes.unchanged = not _update(request)
    except RefusedError as refused:
        if refused.lacks_head_node:
            raise RuntimeError(messages.no_head_node(name)) from None
        if not refused.wants_stopped_fleet:
            raise
        notes.checked = True
        fleet.stop(request, notes, refused=refused, head_node=state.head_node_instance_id)
        return
    notes.begun = True
    notes.save()


def _check_kept(request: Request) -> None:
    stored = library.stored_config(request.cluster_name)
    if stored is None:
        raise RuntimeError(messages.no_stored_config(request.cluster_name))
    if changes := kept.changed(stored, request.config):
        raise RuntimeError(messages.kept(request.cluster_name, changes))


def _update(request: Request) -> bool:
    try:
        return library.update(request.cluster_name, request.update_config)
    except (TransientError, RefusedError):
        after = library.find(request.cluster_name)
        if not after or not after.is_changing:
            raise
        return True  # the answer was lost, but the update goes on


def _end(notes: Record, state: ClusterState, *, is_rollback: bool) -> bool:
    failed = state.status.endswith("_FAILED") and not notes.unchanged
    try:
        if not fleet.is_as_before(notes):
            return False
    except RefusedError as refused:  # it cannot be started, as after a rollback that failed
        if not failed and not is_rollback:
            raise
        print(f"{notes.cluster_name}: the fleet stays as it is: {refused}")
    if failed and not is_rollback:
        raise evidence.failure(notes.cluster_name, state)
    return True


def give_up(request: Request, notes: Record) -> bool:
    """The time is up: whether that is an end, as it is for a rollback; else the fleet is asked for again."""
    if parent.rolls_back(request.stack_id):
        notes.enter("left as it is", f"The time is up; the rollback leaves {request.cluster_name} as it is.")
        return True
    _restart(notes)
    return False


def _restart(notes: Record) -> None:
    """Before giving up: ask for the fleet of before; the head node starts it when it can."""
    try:
        fleet.is_as_before(notes)
    except (TransientError, RefusedError, ClusterNotFoundError) as error:
        print(f"{notes.cluster_name}: the fleet could not be started; the rollback tries again: {error}")
