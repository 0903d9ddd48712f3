"""Stops the compute fleet for updates that want it stopped, and starts it again, whatever comes of them."""

from __future__ import annotations

import jobs
import library
import messages
from answers import ClusterNotFoundError, RefusedError, TransientError
from record import Record
from request import Request

_RUNNING = {"RUNNING", "PROTECTED"}
_STARTING = {"START_REQUESTED", "STARTING"}
_STOPPING = {"STOP_REQUESTED", "STOPPING"}


def stop(request: Request, notes: Record, *, refused: RefusedError, head_node: str | None) -> None:
    """Ask the fleet to stop, so that the refused update can go on.

    Raises:
        RuntimeError: nodes run and may not be stopped; nothing was changed.
        RecordError: what the fleet did before could not be written down; nothing was changed.
    """
    name = request.cluster_name
    running = library.running_compute_nodes(name)
    if running and request.on_busy != "stop":
        named = jobs.running(head_node)
        if request.on_busy == "drain":
            raise RuntimeError(messages.cannot_drain(name, named, refused))
        raise RuntimeError(messages.busy(name, running, named, refused))
    if notes.fleet_before is None:
        notes.fleet_before = library.fleet_status(name)
    notes.save()
    notes.enter("stopping the fleet")
    library.request_fleet(name, "STOP_REQUESTED")


def status_if_known(cluster_name: str) -> str | None:
    """Ask for the fleet's status; None when AWS does not say, or there is no cluster."""
    try:
        return library.fleet_status(cluster_name)
    except (TransientError, RefusedError, ClusterNotFoundError) as error:
        print(f"{cluster_name}: the status of its fleet is unknown: {error}")
        return None


def is_stopping(notes: Record) -> bool:
    """Whether the fleet was asked to stop and has not yet."""
    return notes.fleet_before is not None and library.fleet_status(notes.cluster_name) in _STOPPING


def is_as_before(notes: Record) -> bool:
    """Start the fleet if it ran before; whether it does again. Raises RecordError."""
    if notes.fleet_before is None:
        return True
    status = library.fleet_status(notes.cluster_name)
    if notes.fleet_before in _RUNNING | _STARTING and status not in _RUNNING:
        notes.enter("starting the fleet")
        if status not in _STARTING:
            library.request_fleet(notes.cluster_name, "START_REQUESTED")
        return False
    notes.fleet_before = None
    notes.save()
    return True
