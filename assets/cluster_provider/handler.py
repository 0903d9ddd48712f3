"""Lambda entry of the custom resource: create, update and delete a cluster of one's own.

Called by the CDK Provider framework: `on_event` checks and refuses, `is_complete` is polled and takes one
step a call until the work has ended. A cluster is ours if it carries the id of the CloudFormation stack
that made it; nothing else is ever updated or deleted. Nothing here waits for a job or a node.
"""

from __future__ import annotations

import contextlib
from typing import Any

import creation
import deletion
import evidence
import fleet
import library
import messages
import parent
import record
import updating
from answers import ClusterNotFoundError, RefusedError, TransientError
from patience import patiently
from record import LostError, Record, RecordError, SupersededError
from request import Request

_REQUESTS = {"Create": creation, "Update": updating, "Delete": deletion}


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Check what CloudFormation asks for; returns the physical id, and what each poll has to know.

    Raises:
        RuntimeError: it is refused; nothing was changed.
    """
    request = Request.from_event(event)
    print(f"{request.kind} {request.cluster_name} for {request.stack_id}")
    notes = None
    try:
        notes = _open(request)
        _REQUESTS[request.kind].check(request, notes)
    except (RefusedError, TransientError, SupersededError) as error:
        _take_back(request, notes)
        raise RuntimeError(_explain(request, error)) from None
    except RuntimeError:
        _take_back(request, notes)
        raise
    return {
        "PhysicalResourceId": request.physical_id,
        "Began": notes.began,
        "Adopts": notes.adopts,
        "FleetBefore": _fleet_before(request, notes),
    }


def _fleet_before(request: Request, notes: Record) -> str | None:
    """The compute fleet's status, which each poll gets with the event should the notes be lost."""
    if request.kind != "Update" and not notes.adopts:
        return None
    return notes.fleet_before or fleet.status_if_known(request.cluster_name)


def _take_back(request: Request, notes: Record | None) -> None:
    """Remove the notes of a Create that is refused here: CDK's framework sends no Delete for it."""
    if request.kind == "Create" and notes and notes.is_new:
        _forget(request)


def is_complete(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take the next step; says whether it was the last. Raises RuntimeError when the work ended badly."""
    request = Request.from_event(event)
    try:
        notes = _resume(request)
    except TransientError as error:
        print(f"{request.cluster_name}: asking again later: {error}")
        return {"IsComplete": False}
    except SupersededError as error:
        raise RuntimeError(_explain(request, error)) from None
    try:
        done = _step(request, notes)
    except (RefusedError, SupersededError) as error:
        raise _failed(notes, RuntimeError(_explain(request, error))) from None
    except RuntimeError as error:
        raise _failed(notes, error) from None
    if done is None:
        return {"IsComplete": False}
    return {"IsComplete": True, **done}


def _step(request: Request, notes: Record) -> dict[str, Any] | None:
    """Take one step; the answer's attributes when it was the last one, else None."""
    module = updating if notes.adopts else _REQUESTS[request.kind]
    try:
        done = not _is_hopeless(notes) and module.step(request, notes)
    except (TransientError, ClusterNotFoundError) as error:
        print(f"{request.cluster_name}: asking again later: {error}")
        done = False
    try:
        if not done and notes.is_late:
            done = _give_up(request, notes)
        if not done:
            return None
        if request.kind == "Delete":
            _forget(request)
            return {}
        attributes = _attributes(request)
        notes.enter("done")
    except TransientError as error:
        print(f"{request.cluster_name}: asking again later: {error}")
        return None
    return attributes


def _is_hopeless(notes: Record) -> bool:
    """Whether to begin now would only leave something half-made."""
    return notes.is_late and not notes.begun


def _give_up(request: Request, notes: Record) -> bool:
    if (request.kind == "Update" or notes.adopts) and updating.give_up(request, notes):
        return True
    try:
        state = library.find(request.cluster_name)
    except TransientError:
        state = None
    late = messages.too_late(request.cluster_name, request.kind, state.status if state else "not to be seen")
    if not state:
        raise RuntimeError(late)
    raise RuntimeError(messages.fit(f"{late} | {evidence.failure(request.cluster_name, state)}"))


def _forget(request: Request) -> None:
    """A parameter that stays is not worth a failed deletion."""
    try:
        patiently(request.cluster_name, record.forget)
    except RecordError as error:
        print(error)


def _failed(notes: Record, error: RuntimeError) -> RuntimeError:
    """For `make status`; to be raised."""
    with contextlib.suppress(LostError, SupersededError):
        notes.enter("failed", str(error))
    return error


def _explain(request: Request, error: Exception) -> str:
    if isinstance(error, RefusedError):
        print(f"{request.cluster_name}: refused: {error.content}")
        return messages.refusal(request.cluster_name, error)
    if isinstance(error, SupersededError):
        return messages.superseded(request.cluster_name)
    return messages.no_answer(request.cluster_name, error)


def _open(request: Request) -> Record:
    """Notes on a request that begins; those of an event that comes twice are kept.

    Raises:
        RecordError: they could not be read or written, and only a Delete can do without.
        SupersededError: the event was delivered again, after that of another request.
    """
    new = _new(request)
    try:
        return patiently(request.cluster_name, lambda: _open_with(request, new))
    except RecordError as error:
        if request.kind != "Delete":
            raise
        print(f"{request.cluster_name}: deleted without notes: {error}")
    return new


def _open_with(request: Request, new: Record) -> Record:
    found = record.load()
    if found and found.request_id == request.id:
        return found
    if found and request.kind != "Delete" and request.id in found.former:
        raise SupersededError(request.cluster_name)
    new.follow(found)
    if found and request.kind == "Update":
        new.fleet_before = found.fleet_before  # the update that this one rolls back may have stopped it
    new.open()
    return new


def _new(request: Request) -> Record:
    return Record(
        request_id=request.id, request=request.kind, cluster_name=request.cluster_name, began=request.began
    )


def _resume(request: Request) -> Record:
    """The notes on a request that is polled.

    Raises:
        TransientError: they could not be read or written, or are not there yet: SSM may lag behind.
        SupersededError: another request came since, and what this one knows no longer holds.
    """
    try:
        found = record.load()
    except RecordError:
        if request.kind != "Delete":
            raise
        found = None
    if found and found.request_id == request.id:
        return found
    if request.kind == "Delete":
        return _new(request)
    if found and found.began > request.began:
        raise SupersededError(request.cluster_name)
    return _begin_anew(request, found)


def _begin_anew(request: Request, found: Record | None) -> Record:
    """Notes in the place of lost ones: what AWS does not show, the event has."""
    notes = _new(request)
    if not notes.is_settled:
        raise TransientError("the notes of this request are not there yet")
    if not parent.awaits(request.kind, request.stack_id):
        raise SupersededError(request.cluster_name)
    notes.adopts, notes.fleet_before = request.adopts, request.fleet_before
    notes.follow(found)
    notes.open()
    notes.enter("going on without the notes of before")
    return notes


def _attributes(request: Request) -> dict[str, Any]:
    state = library.find(request.cluster_name)
    return {"Data": {"HeadNodeInstanceId": (state and state.head_node_instance_id) or "none"}}
