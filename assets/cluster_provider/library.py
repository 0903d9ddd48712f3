"""Typed operations of ParallelCluster's library on one cluster."""

from __future__ import annotations

import datetime
import os
from dataclasses import replace
from typing import Any

# library_call prepares the environment in which the modules of pcluster below are imported.
import messages
import yaml
from cluster_state import ClusterState, DryRun
from errors import LAUNCH_VALIDATORS, ClusterNotFoundError, RefusedError, TransientError, code_of
from library_call import call, call_with_retries, clear_caches, content_of, is_aws_failure
from pcluster.aws.aws_api import AWSApi
from pcluster.constants import PCLUSTER_DYNAMODB_PREFIX
from pcluster.models.cluster import Cluster
from pcluster.models.compute_fleet_status_manager import ComputeFleetStatus, JsonComputeFleetStatusManager
from request import OWNER_TAG, has_own_tags

_NO_CHANGES = "no changes found"
_MISSING = {"404", "NoSuchBucket", "NoSuchKey", "NoSuchVersion"}


def find(cluster_name: str) -> ClusterState | None:
    """Describe a cluster, with retries; None if it does not exist. Raises TransientError, RefusedError.

    A stack of this name that is no cluster, which the library refuses to describe, is one without our tag.
    """
    try:
        answer = call_with_retries("describe_cluster", cluster_name=cluster_name)
    except ClusterNotFoundError:
        return None
    except RefusedError:
        if not (foreign := _foreign_stack(cluster_name)):
            raise
        return foreign
    return ClusterState(
        status=str(answer["clusterStatus"]),
        tags={tag["key"]: tag["value"] for tag in answer.get("tags") or []},
        failures=tuple(answer.get("failures") or []),
        head_node_instance_id=(answer.get("headNode") or {}).get("instanceId"),
        stack_status=str(answer.get("cloudFormationStackStatus")),
        created=str(answer.get("creationTime")),
        changed=str(answer.get("lastUpdatedTime") or answer.get("creationTime")),
    )


def _foreign_stack(cluster_name: str) -> ClusterState | None:
    """Describe a stack of this name; None if this app made it, or it cannot be described."""
    try:
        stack = Cluster(cluster_name).stack
    except Exception as error:
        print(f"{cluster_name}: a stack of this name cannot be described: {error}")
        return None
    tags = {tag["Key"]: tag["Value"] for tag in stack.tags}
    if OWNER_TAG in tags:  # of another version of ParallelCluster
        return None
    return ClusterState(
        status=stack.status,
        tags=tags,
        failures=(),
        head_node_instance_id=None,
        stack_status=stack.status,
        created=str(stack.creation_time),
        changed=str(stack.last_updated_time),
    )


def stack_events(cluster_name: str) -> list[dict[str, Any]]:
    """Return the last 100 events of the cluster's stack, the newest first. Raises as `find` does."""
    return list(call("get_cluster_stack_events", cluster_name=cluster_name).get("events") or [])


def log_group(cluster_name: str) -> str:
    """Return the name of the cluster's log group. Raises RefusedError."""
    try:
        return str(Cluster(cluster_name).stack.log_group_name)
    except Exception as error:
        raise RefusedError(content_of(error)) from error


def stored_config(cluster_name: str) -> dict[str, Any] | None:
    """Read the cluster's last config from the library's bucket; None if the bucket no longer has it.

    The library writes it before all other files of the cluster's stack, and removes it first.
    Raises TransientError, RefusedError.
    """
    clear_caches()
    try:
        return dict(yaml.safe_load(Cluster(cluster_name).source_config_text))
    except Exception as error:
        if is_aws_failure(error):
            raise TransientError(str(content_of(error).get("message"))) from error
        if code_of(error) in _MISSING:
            return None
        raise RefusedError(content_of(error)) from error


def head_node_log_streams(cluster_name: str) -> list[str]:
    """List the head node's log streams: `<host>.<instance id>.<log>`."""
    answer = call(
        "list_cluster_log_streams", cluster_name=cluster_name, filters=["Name=node-type,Values=HeadNode"]
    )
    return [str(stream["logStreamName"]) for stream in answer.get("logStreams") or []]


def log_tail(cluster_name: str, stream: str, *, lines: int) -> str:
    """Return the last lines of a log stream."""
    answer = call("get_cluster_log_events", cluster_name=cluster_name, log_stream_name=stream, limit=lines)
    return "\n".join(f"{e.get('timestamp')} {e.get('message')}" for e in answer.get("events") or [])


def check_create(cluster_name: str, config: dict[str, Any]) -> DryRun:
    """Validate a new cluster without creating it. Raises TransientError, RefusedError."""
    return _dry_run("create_cluster", cluster_name=cluster_name, cluster_configuration=config)


def check_update(cluster_name: str, config: dict[str, Any]) -> DryRun | None:
    """Validate an update; None if the cluster has this config. Raises TransientError, RefusedError."""
    try:
        return _dry_run("update_cluster", cluster_name=cluster_name, cluster_configuration=config)
    except RefusedError as refused:
        if _NO_CHANGES in str(refused.content).lower():
            return None
        raise


def _dry_run(operation: str, **arguments: Any) -> DryRun:
    try:
        return _read_dry_run(call_with_retries(operation, **arguments, dryrun=True))
    except RefusedError as refused:
        if not has_own_tags(arguments["cluster_configuration"]) or not (denied := refused.denied_volumes):
            raise
    # An organisation's policy may require these tags on volumes; only a real launch has them.
    skipped = [f"type:{each}" for each in LAUNCH_VALIDATORS]
    answer = call_with_retries(operation, **arguments, dryrun=True, suppress_validators=skipped)
    dry_run = _read_dry_run(answer)
    return replace(dry_run, validation=(*denied, *dry_run.validation))


def _read_dry_run(answer: dict[str, Any]) -> DryRun:
    findings = answer.get("validation_messages") or []
    changes = answer.get("change_set") or []
    return DryRun(
        validation=tuple(f"{m['level']} {m['type']}: {m['message']}" for m in findings),
        changes=tuple(f"{c['parameter']}: {c['current_value']} -> {c['requested_value']}" for c in changes),
    )


# check_create and check_update have run the validators: a second run takes a minute and finds nothing new.
_VALIDATED = ["ALL"]


def create(cluster_name: str, config: dict[str, Any]) -> None:
    """Start to create a checked cluster; a head node that fails is kept until the cluster is deleted."""
    call(
        "create_cluster",
        cluster_name=cluster_name,
        cluster_configuration=config,
        rollback_on_failure=False,
        suppress_validators=_VALIDATED,
    )


def update(cluster_name: str, config: dict[str, Any]) -> bool:
    """Start a checked update; False if the cluster already has this config."""
    try:
        call(
            "update_cluster",
            cluster_name=cluster_name,
            cluster_configuration=config,
            suppress_validators=_VALIDATED,
        )
    except RefusedError as refused:
        if _NO_CHANGES in str(refused.content).lower():
            return False
        raise
    return True


def fleet_status(cluster_name: str) -> str:
    """Return RUNNING, STOP_REQUESTED, STOPPING, STOPPED, START_REQUESTED, STARTING or PROTECTED.

    Raises:
        TransientError: the cluster's table did not answer.
        RefusedError: the table has no status.
    """
    status = str(call("describe_compute_fleet", cluster_name=cluster_name)["status"])
    # The library reports UNKNOWN for a table that did not answer, and for one that has no status.
    return status if status != "UNKNOWN" else _stored_fleet_status(cluster_name)


def _stored_fleet_status(cluster_name: str) -> str:
    table, key = f"{PCLUSTER_DYNAMODB_PREFIX}{cluster_name}", JsonComputeFleetStatusManager.DB_KEY
    try:
        stored = AWSApi.instance().ddb_resource.get_item(table, {"Id": key})
    except Exception as error:
        if code_of(error) != "ResourceNotFoundException":
            raise TransientError(f"{table} gave no status of the compute fleet: {error}") from error
        stored = {}
    try:
        return str(ComputeFleetStatus(stored["Item"]["Data"]["status"]))
    except (KeyError, TypeError, ValueError):
        at = datetime.datetime.now(datetime.UTC).isoformat(" ")
        message = messages.no_fleet_status(
            cluster_name, region=os.environ["AWS_REGION"], table=table, at=at, has_item="Item" in stored
        )
        raise RefusedError({"message": message}) from None


def request_fleet(cluster_name: str, status: str) -> None:
    """Ask the head node to stop or start the compute fleet: STOP_REQUESTED or START_REQUESTED."""
    call("update_compute_fleet", cluster_name=cluster_name, status=status)


def running_compute_nodes(cluster_name: str) -> int:
    """Return the number of compute instances of the cluster that run or start."""
    answer = call("describe_cluster_instances", cluster_name=cluster_name, node_type="ComputeNode")
    return sum(each.get("state") in {"pending", "running"} for each in answer.get("instances") or [])


def delete(cluster_name: str) -> None:
    """Start to delete the cluster. Raises ClusterNotFoundError if it no longer exists."""
    call("delete_cluster", cluster_name=cluster_name)
