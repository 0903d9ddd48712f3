"""Lambda entry of the custom resource: create, update and delete a stack's own cluster.

Called by the CDK Provider framework: `on_event` checks and refuses, `is_complete` is polled and takes one
step per call until the work has ended. A cluster is ours if its tag has the id of the CloudFormation stack
that made it; no other is ever updated or deleted. No function here waits for a job or a node.
"""

from __future__ import annotations

import contextlib
from typing import Any

import creation
import deletion
import failure_logs
import fleet
import library
import messages
import updating
from errors import ClusterNotFoundError, RefusedError, TransientError
from record import LostError, Record, RecordError, SupersededError
from request import Request
from request_record import find_record, open_record
from retry import retry

_MODULES = {"Create": creation, "Update": updating, "Delete": deletion}


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Check a request of CloudFormation; return the physical id and the values that each poll needs.

    Raises:
        RuntimeError: the request is refused; nothing was changed.
    """
    request = Request.from_event(event)
    print(f"{request.kind} {request.cluster_name} for {request.stack_id}")
    record = None
    try:
        record = open_record(request)
        _MODULES[request.kind].check(request, record)
    except (RefusedError, TransientError, SupersededError) as error:
        _withdraw(request, record)
        raise RuntimeError(_explain(request, error)) from None
    except RuntimeError:
        _withdraw(request, record)
        raise
    return {
        "PhysicalResourceId": request.physical_id,
        "Began": record.received,
        "Adopts": record.adopts,
        "FleetBefore": _fleet_before(request, record),
    }


def _fleet_before(request: Request, record: Record) -> str | None:
    """Return the compute fleet's status, which each poll gets with the event in case the record is lost."""
    if request.kind != "Update" and not record.adopts:
        return None
    return record.fleet_before or fleet.status_if_known(request.cluster_name)


def _withdraw(request: Request, record: Record | None) -> None:
    """Delete the record of a Create that on_event refuses: CDK's framework sends no Delete for it."""
    if request.kind == "Create" and record and record.is_new:
        _delete_record(record)


def is_complete(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Take the next step, and report if it was the last. Raises RuntimeError when the work failed."""
    request = Request.from_event(event)
    try:
        record = find_record(request)
    except TransientError as error:
        print(f"{request.cluster_name}: asking again later: {error}")
        return {"IsComplete": False}
    except SupersededError as error:
        raise RuntimeError(_explain(request, error)) from None
    try:
        done = _step(request, record)
    except (RefusedError, SupersededError) as error:
        raise _failed(record, RuntimeError(_explain(request, error))) from None
    except RuntimeError as error:
        raise _failed(record, error) from None
    if done is None:
        return {"IsComplete": False}
    return {"IsComplete": True, **done}


def _step(request: Request, record: Record) -> dict[str, Any] | None:
    """Take one step; return the answer's attributes after the last one, else None."""
    module = updating if record.adopts else _MODULES[request.kind]
    try:
        done = not _is_too_late_to_begin(record) and module.step(request, record)
    except (TransientError, ClusterNotFoundError) as error:
        print(f"{request.cluster_name}: asking again later: {error}")
        done = False
    try:
        if not done and record.is_late:
            done = _give_up(request, record)
        if not done:
            return None
        if request.kind == "Delete":
            _delete_record(record)
            return {}
        attributes = _attributes(request)
        record.enter("done")
    except TransientError as error:
        print(f"{request.cluster_name}: asking again later: {error}")
        return None
    return attributes


def _is_too_late_to_begin(record: Record) -> bool:
    """Return True for late work that has not begun: it could only end half done."""
    return record.is_late and not record.accepted


def _give_up(request: Request, record: Record) -> bool:
    if (request.kind == "Update" or record.adopts) and updating.give_up(request, record):
        return True
    try:
        state = library.find(request.cluster_name)
    except TransientError:
        state = None
    late = messages.too_late(request.cluster_name, request.kind, state.status if state else "not visible")
    if not state:
        raise RuntimeError(late)
    raise RuntimeError(messages.fit(f"{late} | {failure_logs.failure(request.cluster_name, state)}"))


def _delete_record(record: Record) -> None:
    """Delete the record; a failure is only logged, since it must not fail the cluster's deletion."""
    try:
        retry(record.cluster_name, record.delete)
    except RecordError as error:
        print(error)


def _failed(record: Record, error: RuntimeError) -> RuntimeError:
    """Record a failure, which `trainctl status` shows, and return it to be raised."""
    with contextlib.suppress(LostError, SupersededError):
        record.enter("failed", str(error))
    return error


def _explain(request: Request, error: Exception) -> str:
    if isinstance(error, RefusedError):
        print(f"{request.cluster_name}: refused: {error.content}")
        return messages.refusal(request.cluster_name, error)
    if isinstance(error, SupersededError):
        return messages.superseded(request.cluster_name)
    return messages.no_answer(request.cluster_name, error)


def _attributes(request: Request) -> dict[str, Any]:
    state = library.find(request.cluster_name)
    return {"Data": {"HeadNodeInstanceId": (state and state.head_node_instance_id) or "none"}}
