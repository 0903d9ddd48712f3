"""The record of a request: opened by on_event, and found again by each poll."""

from __future__ import annotations

import parent_stack
from errors import TransientError
from record import Record, RecordError, SupersededError
from request import Request
from retry import retry


def open_record(request: Request) -> Record:
    """Open the record of a new request, or return the record of an event that was delivered twice.

    Raises:
        RecordError: SSM could not read or write it, and the request is not a Delete.
        SupersededError: the event was delivered again, after another request.
    """
    new = _new(request)
    try:
        return retry(request.cluster_name, lambda: _find_or_open(request, new))
    except RecordError as error:
        if request.kind != "Delete":
            raise
        print(f"{request.cluster_name}: deleted without a record: {error}")
    return new


def _find_or_open(request: Request, new: Record) -> Record:
    found = Record.load()
    if found and found.request_id == request.id:
        return found
    if found and request.kind != "Delete" and request.id in found.former:
        raise SupersededError(request.cluster_name)
    new.follow(found)
    if found and request.kind == "Update":
        new.fleet_before = found.fleet_before  # a rollback restores the fleet that its update stopped
    new.open()
    return new


def _new(request: Request) -> Record:
    return Record(
        request_id=request.id,
        kind=request.kind,
        cluster_name=request.cluster_name,
        received=request.received,
    )


def find_record(request: Request) -> Record:
    """Return the record of a request that is polled.

    Raises:
        TransientError: SSM could not read or write it, or does not return it yet.
        SupersededError: another request has begun since, and this one's record is out of date.
    """
    try:
        found = Record.load()
    except RecordError:
        if request.kind != "Delete":
            raise
        found = None
    if found and found.request_id == request.id:
        return found
    if request.kind == "Delete":
        return _new(request)
    if found and found.received > request.received:
        raise SupersededError(request.cluster_name)
    return _restore(request, found)


def _restore(request: Request, found: Record | None) -> Record:
    """Open a new record in place of a lost one; the event has the values that AWS does not show."""
    record = _new(request)
    if not record.is_settled:
        raise TransientError("SSM does not return the record of this request yet")
    if not parent_stack.awaits(request.kind, request.stack_id):
        raise SupersededError(request.cluster_name)
    record.adopts, record.fleet_before = request.adopts, request.fleet_before
    record.follow(found)
    record.open()
    record.enter("continuing without the earlier record")
    return record
