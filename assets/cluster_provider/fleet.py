"""Updates that want the compute fleet stopped: stop it, update, start it again, whatever comes of it.

Each call takes one step and returns, and CloudFormation's waiter calls again. What must be known
between two calls travels in the event, as on_event answered it: what the fleet did before, and when
the cluster was last updated.
"""

from __future__ import annotations

from typing import Any

import library
import messages

_RUNNING = {"RUNNING", "PROTECTED"}
_STARTING = {"START_REQUESTED", "STARTING"}
_STOPPING = {"STOP_REQUESTED", "STOPPING"}


def begin_stop(
    name: str, *, on_busy: str, refused: library.RefusedError, state: library.ClusterState
) -> dict[str, Any]:
    """Ask the fleet to stop, so that the refused update can go on; what to answer CloudFormation.

    Args:
        on_busy: what to do when compute nodes run: fail, drain or stop.

    Raises:
        RuntimeError: nodes run and may not be stopped; nothing was changed.
    """
    if on_busy == "drain":
        raise RuntimeError(messages.cannot_drain(name, refused.content))
    running = library.running_compute_nodes(name)
    if running and on_busy != "stop":
        raise RuntimeError(messages.busy(name, running, refused.content))
    before = library.fleet_status(name)
    library.request_fleet(name, "STOP_REQUESTED")
    print(f"{name}: the fleet was {before} and is asked to stop")
    return {"FleetWas": before, "LastUpdated": state.last_updated, "UpdateStarted": True}


def goes_on(name: str, *, state: library.ClusterState, event: dict[str, Any], config: dict[str, Any]) -> bool:
    """Take the next step; False when the update has ended, well or not, and the fleet is as before."""
    status = library.fleet_status(name)
    print(f"{name}: {state.status}, fleet {status}")
    if state.last_updated != event["LastUpdated"]:
        return not _is_as_before(name, status, event)
    if status in _STOPPING:
        return True
    if status != "STOPPED":
        library.request_fleet(name, "STOP_REQUESTED")
        return True
    try:
        if library.update(name, config):
            return True
    except library.RefusedError:
        _is_as_before(name, status, event)
        raise
    _is_as_before(name, status, event)
    return False


def _is_as_before(name: str, status: str, event: dict[str, Any]) -> bool:
    """Start the fleet if it ran before; whether it does again."""
    if event["FleetWas"] not in _RUNNING | _STARTING or status in _RUNNING:
        return True
    if status not in _STARTING:
        library.request_fleet(name, "START_REQUESTED")
    return False
