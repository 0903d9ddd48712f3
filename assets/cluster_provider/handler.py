"""Lambda entry of the custom resource: create, update and delete a cluster of one's own.

Called by the CDK Provider framework: `on_event` checks and refuses, `is_complete` is polled and takes one
step a call until the work has ended. A cluster is ours if it carries the id of the CloudFormation stack
that made it; nothing else is ever updated or deleted. Nothing here waits for a job or a node.
"""

from __future__ import annotations

from typing import Any

import creation
import deletion
import library
import messages
import record
import updating
from answers import ClusterNotFoundError, RefusedError, TransientError
from patience import patiently
from record import Record, RecordError, SupersededError
from request import Request

_REQUESTS = {"Create": creation, "Update": updating, "Delete": deletion}


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Check what CloudFormation asks for; returns the physical id: the cluster's name.

    Raises:
        RuntimeError: it is refused; nothing was changed.
    """
    request = Request.from_event(event)
    print(f"{request.kind} {request.cluster_name} for {request.stack_id}")
    try:
        notes = patiently(request.cluster_name, lambda: _open(request))
        _REQUESTS[request.kind].check(request, notes)
    except (RefusedError, TransientError) as error:
        raise RuntimeError(_explain(request, error)) from None
    return {"PhysicalResourceId": request.physical_id}


def is_complete(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take the next step; says whether it was the last. Raises RuntimeError when the work ended badly."""
    request = Request.from_event(event)
    try:
        notes = _resume(request)
        if not _REQUESTS[request.kind].step(request, notes):
            return {"IsComplete": False}
        attributes = {} if request.kind == "Delete" else _attributes(request)
        notes.enter("done")
    except (TransientError, ClusterNotFoundError) as error:
        print(f"{request.cluster_name}: asking again later: {error}")
        return {"IsComplete": False}
    except (RefusedError, SupersededError) as error:
        raise RuntimeError(_explain(request, error)) from None
    return {"IsComplete": True, **attributes}


def _explain(request: Request, error: Exception) -> str:
    if isinstance(error, RefusedError):
        return messages.refusal(request.cluster_name, error)
    if isinstance(error, SupersededError):
        return messages.superseded(request.cluster_name)
    return messages.no_answer(request.cluster_name, error)


def _new(request: Request) -> Record:
    return Record(request_id=request.id, request=request.kind, cluster_name=request.cluster_name)


def _open(request: Request) -> Record:
    """Notes on a request that begins; those of an event that comes twice are kept.

    Raises:
        RecordError: they could not be read or written, and only a Delete can do without.
    """
    new = _new(request)
    try:
        found = record.load()
        if found and found.request_id == request.id:
            return found
        if found and request.kind == "Update":
            new.fleet_before = found.fleet_before  # the update that this one rolls back may have stopped it
        new.open()
    except RecordError as error:
        if request.kind != "Delete":
            raise
        print(f"{request.cluster_name}: deleted without notes: {error}")
    return new


def _resume(request: Request) -> Record:
    """The notes on a request that is polled.

    Raises:
        RecordError: they could not be read.
        SupersededError: another request came since.
    """
    try:
        found = record.load()
    except RecordError:
        if request.kind != "Delete":
            raise
        found = None
    if found and found.request_id == request.id:
        return found
    if request.kind != "Delete":
        raise SupersededError(request.cluster_name)
    return _new(request)


def _attributes(request: Request) -> dict[str, Any]:
    state = library.find(request.cluster_name)
    return {"Data": {"HeadNodeInstanceId": (state and state.head_node_instance_id) or "none"}}
