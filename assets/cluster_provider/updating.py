"""Update: a dry run, a stop of the fleet if it is required, the update, a start of the fleet.

A rollback is also an Update, to the former config, and a stack is stuck if its rollback fails. So a rollback
never forces a change: if the former config cannot be restored without harm (for example because nodes run
jobs), the cluster stays unchanged, the provider's log and record report this, and the next deploy continues
from there.
"""

from __future__ import annotations

import creation
import failure_logs
import fleet
import immutable
import library
import messages
import parent_stack
from cluster_state import ClusterState
from errors import ClusterNotFoundError, RefusedError, TransientError
from record import Record
from request import Request


def check(request: Request, record: Record) -> None:
    """Refuse another name. `step` checks the rest: a throttled call must not fail a rollback.

    Raises:
        RuntimeError: the cluster would be renamed.
    """
    if request.new_name != request.cluster_name:
        raise RuntimeError(messages.renamed(request.cluster_name, request.new_name))
    record.enter("validating")


def step(request: Request, record: Record) -> bool:
    """Take the next step; return True once the update has ended and the fleet is restored.

    Raises:
        RuntimeError: it failed, or is not possible; the fleet is restored, or its start was requested.
    """
    name, is_rollback = request.cluster_name, parent_stack.rolls_back(request.stack_id)
    state = library.find(name)
    if is_rollback and (state is None or not request.owns(state) or _creation_failed(state)):
        record.enter("left unchanged", f"There is no cluster {name} of this stack to roll back.")
        return True
    if state is None or record.replaces:
        return creation.step(request, record)  # the cluster was deleted by hand: this deploy creates it again
    if _creation_failed(state) and not record.accepted:
        creation.mark_for_replacement(record, state)
        return creation.step(request, record)
    if not request.owns(state):
        raise RuntimeError(messages.not_ours(name))
    if state.is_changing:
        record.enter(creation.stage_of(name))
        return False
    if record.accepted:
        return _end(record, state, is_rollback=is_rollback)
    try:
        _begin(request, record, state)
    except (RuntimeError, RefusedError) as error:
        if not is_rollback:
            _restart(record)
            raise
        why = messages.refusal(name, error) if isinstance(error, RefusedError) else str(error)
        record.accepted = record.unchanged = True
        record.enter("left unchanged", f"The rollback left {name} as it is: {why}")
        record.save()
    return False


def _creation_failed(state: ClusterState) -> bool:
    return state.status == "CREATE_FAILED"


def _begin(request: Request, record: Record, state: ClusterState) -> None:
    """Start the update, or first stop the fleet. Raises RuntimeError, RefusedError if it is not possible."""
    name = request.cluster_name
    if fleet.is_stopping(record):
        return
    try:
        if not record.checked:
            _check_immutable(request)
            dry_run = library.check_update(name, request.update_config)
            if dry_run is None:
                record.unchanged = True
            else:
                record.enter("updating", "\n".join([*dry_run.changes, *dry_run.validation]))
        if not record.unchanged:
            record.unchanged = not _update(request)
    except RefusedError as refused:
        if refused.lacks_head_node:
            raise RuntimeError(messages.no_head_node(name)) from None
        if not refused.requires_stopped_fleet:
            raise
        record.checked = True
        fleet.stop(request, record, refused=refused, head_node=state.head_node_instance_id)
        return
    record.accepted = True
    record.save()


def _check_immutable(request: Request) -> None:
    stored = library.stored_config(request.cluster_name)
    if stored is None:
        raise RuntimeError(messages.no_stored_config(request.cluster_name))
    if changes := immutable.changes(stored, request.config):
        raise RuntimeError(messages.immutable(request.cluster_name, changes))


def _update(request: Request) -> bool:
    try:
        return library.update(request.cluster_name, request.update_config)
    except (TransientError, RefusedError):
        after = library.find(request.cluster_name)
        if not after or not after.is_changing:
            raise
        return True  # the answer was lost, but the update began


def _end(record: Record, state: ClusterState, *, is_rollback: bool) -> bool:
    failed = state.status.endswith("_FAILED") and not record.unchanged
    try:
        if not fleet.is_restored(record):
            return False
    except RefusedError as refused:  # the fleet cannot start, for example after a rollback that failed
        if not failed and not is_rollback:
            raise
        print(f"{record.cluster_name}: the fleet stays as it is: {refused}")
    if failed and not is_rollback:
        raise failure_logs.failure(record.cluster_name, state)
    return True


def give_up(request: Request, record: Record) -> bool:
    """End a late rollback and return True; for another late update, start the fleet and return False."""
    if parent_stack.rolls_back(request.stack_id):
        record.enter(
            "left unchanged", f"The time is up; the rollback leaves {request.cluster_name} as it is."
        )
        return True
    _restart(record)
    return False


def _restart(record: Record) -> None:
    """Request the start of a fleet that ran before; the head node starts it when it can."""
    try:
        fleet.is_restored(record)
    except (TransientError, RefusedError, ClusterNotFoundError) as error:
        print(f"{record.cluster_name}: the fleet could not be started; the rollback tries again: {error}")
