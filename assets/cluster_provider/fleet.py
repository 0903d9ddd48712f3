"""Stop and start of the compute fleet for an update; it is started again even if the update fails."""

from __future__ import annotations

import jobs
import library
import messages
from errors import ClusterNotFoundError, RefusedError, TransientError
from record import Record
from request import Request

_RUNNING = {"RUNNING", "PROTECTED"}
_STARTING = {"START_REQUESTED", "STARTING"}
_STOPPING = {"STOP_REQUESTED", "STOPPING"}


def stop(request: Request, record: Record, *, refused: RefusedError, head_node: str | None) -> None:
    """Request a stop of the fleet, so that the refused update becomes possible.

    Raises:
        RuntimeError: nodes run and may not be stopped; nothing was changed.
        RecordError: the fleet's former status could not be saved; nothing was changed.
    """
    name = request.cluster_name
    running = library.running_compute_nodes(name)
    if running and request.on_busy != "stop":
        running_jobs = jobs.running(head_node)
        if request.on_busy == "drain":
            raise RuntimeError(messages.cannot_drain(name, running_jobs, refused))
        raise RuntimeError(messages.busy(name, running, running_jobs, refused))
    if record.fleet_before is None:
        record.fleet_before = library.fleet_status(name)
    record.save()
    record.enter("stopping the fleet")
    library.request_fleet(name, "STOP_REQUESTED")


def status_if_known(cluster_name: str) -> str | None:
    """Return the fleet's status; None if AWS does not answer, or the cluster does not exist."""
    try:
        return library.fleet_status(cluster_name)
    except (TransientError, RefusedError, ClusterNotFoundError) as error:
        print(f"{cluster_name}: the status of its fleet is unknown: {error}")
        return None


def is_stopping(record: Record) -> bool:
    """Return True between the request to stop the fleet and its stop."""
    return record.fleet_before is not None and library.fleet_status(record.cluster_name) in _STOPPING


def is_restored(record: Record) -> bool:
    """Start the fleet if it ran before; return True once it runs again. Raises RecordError."""
    if record.fleet_before is None:
        return True
    status = library.fleet_status(record.cluster_name)
    if record.fleet_before in _RUNNING | _STARTING and status not in _RUNNING:
        record.enter("starting the fleet")
        if status not in _STARTING:
            library.request_fleet(record.cluster_name, "START_REQUESTED")
        return False
    record.fleet_before = None
    record.save()
    return True
