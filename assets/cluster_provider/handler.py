"""Lambda entry of the custom resource: create, update and delete a cluster of one's own.

Called by the CDK Provider framework: `on_event` starts the work, `is_complete` is polled until it
ends. A cluster is ours if it carries the id of the CloudFormation stack that made it; nothing else
is ever updated or deleted. If `on_event` raised once a cluster's stack may exist, the framework
would ignore the Delete that follows, so from there on only `is_complete` fails.
"""

from __future__ import annotations

import json
from typing import Any

import fleet
import library
import messages

OWNER_TAG = "training-cluster:stack-id"
_DONE = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}


def on_event(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Start what CloudFormation asks for; returns the physical id, the cluster's name."""
    kind, name = event["RequestType"], event["ResourceProperties"]["ClusterName"]
    print(f"{kind} {name} for {event['StackId']}")
    try:
        if kind == "Create":
            return _create(name, event)
        if kind == "Update":
            return _update(name, event)
        return _delete(event["PhysicalResourceId"], event)
    except library.RefusedError as refused:
        raise RuntimeError(messages.refusal(refused.content)) from None


def is_complete(event: dict[str, Any], _context: object) -> dict[str, Any]:
    """Say whether the started work has ended; raises when it ended badly."""
    kind, name = event["RequestType"], event["PhysicalResourceId"]
    try:
        state = library.describe(name)
    except library.ClusterNotFoundError:
        if kind == "Delete":
            return {"IsComplete": True}
        raise RuntimeError(f"Cluster {name} disappeared during {kind}") from None
    except library.TransientError as error:
        print(f"{name}: asking again later: {error}")
        return {"IsComplete": False}
    print(f"{kind} {name}: {state.status}")
    if kind == "Delete" and not _is_ours(state, event):
        return {"IsComplete": True}
    if state.status.endswith("_IN_PROGRESS") or _begins_late(kind, name, state, event):
        return {"IsComplete": False}
    return _judge(kind, name, state, event)


def _begins_late(kind: str, name: str, state: library.ClusterState, event: dict[str, Any]) -> bool:
    """Start what on_event could not: the cluster was busy then, or AWS answered with an error."""
    try:
        if kind == "Update" and event.get("UpdatePending"):
            return library.update(name, _config(event))
        if kind == "Update" and "FleetWas" in event:
            return fleet.goes_on(name, state=state, event=event, config=_config(event))
        if kind == "Delete" and not state.status.startswith("DELETE_"):
            library.delete(name)
            return True
    except (library.TransientError, library.ClusterNotFoundError) as error:
        print(f"{name}: again later: {error}")
        return True
    except library.RefusedError as refused:
        raise RuntimeError(messages.refusal(refused.content)) from None
    return False


def _judge(kind: str, name: str, state: library.ClusterState, event: dict[str, Any]) -> dict[str, Any]:
    nothing_to_do = kind == "Update" and not event.get("UpdateStarted", True)
    if kind != "Delete" and (state.status in _DONE or nothing_to_do):
        return {"IsComplete": True, "Data": {"HeadNodeInstanceId": state.head_node_instance_id or "none"}}
    if state.status.endswith("_FAILED"):
        events = library.failed_events(name)
        raise RuntimeError(messages.failure(name, state.status, state.failures, events))
    return {"IsComplete": False}


def _create(name: str, event: dict[str, Any]) -> dict[str, Any]:
    existing = _find(name)
    if existing and not _is_ours(existing, event):
        raise RuntimeError(messages.not_ours(name))
    if not existing:  # else: CloudFormation sent the event twice
        try:
            library.create(name, _config(event))
        except library.TransientError as error:
            # It may have begun all the same. If it has, only is_complete may fail: see above.
            print(f"{name}: create was answered with an error: {error}")
            begun = _find(name)
            if not begun or not _is_ours(begun, event):
                raise
    return {"PhysicalResourceId": name}


def _update(name: str, event: dict[str, Any]) -> dict[str, Any]:
    if name != event["PhysicalResourceId"]:
        raise RuntimeError(
            f"A stack's cluster cannot be renamed ({event['PhysicalResourceId']} to {name}); another "
            "cluster_name is another stack"
        )
    existing = _find(name)
    if not existing or not _is_ours(existing, event):
        raise RuntimeError(f"There is no cluster {name} of this stack to update; nothing was touched")
    pending = {"PhysicalResourceId": name, "UpdateStarted": False, "UpdatePending": True}
    if existing.status.endswith("_IN_PROGRESS"):  # a rollback's Update comes while the first one runs
        return pending
    try:
        return {"PhysicalResourceId": name, "UpdateStarted": library.update(name, _config(event))}
    except library.RefusedError as refused:
        if not refused.wants_stopped_fleet:
            raise
        stop = fleet.begin_stop(name, on_busy=_on_busy(event), refused=refused, state=existing)
        return {"PhysicalResourceId": name, **stop}
    except library.TransientError as error:
        print(f"{name}: update was answered with an error: {error}")
        return pending


def _delete(name: str, event: dict[str, Any]) -> dict[str, Any]:
    existing = _find(name)
    if existing and _is_ours(existing, event):
        try:
            library.delete(name)
        except (library.ClusterNotFoundError, library.TransientError) as error:
            print(f"{name}: delete was answered with an error, is_complete sees to it: {error}")
    elif existing:
        print(messages.not_ours(name))
    return {"PhysicalResourceId": name}


def _find(name: str) -> library.ClusterState | None:
    try:
        return library.describe(name)
    except library.ClusterNotFoundError:
        return None


def _is_ours(state: library.ClusterState, event: dict[str, Any]) -> bool:
    return state.tags.get(OWNER_TAG) == str(event["StackId"])


def _on_busy(event: dict[str, Any]) -> str:
    return str(event["ResourceProperties"].get("OnBusy", "fail"))


def _config(event: dict[str, Any]) -> dict[str, Any]:
    config: dict[str, Any] = json.loads(event["ResourceProperties"]["ClusterConfiguration"])
    owner = {"Key": OWNER_TAG, "Value": event["StackId"]}
    config = {**config, "Tags": [*config.get("Tags", []), owner]}
    if event["RequestType"] == "Update" and _on_busy(event) == "drain":
        # It steers updates and is no change of its own: nodes end their jobs and are then replaced.
        config["Scheduling"]["SlurmSettings"]["QueueUpdateStrategy"] = "DRAIN"
    return config
