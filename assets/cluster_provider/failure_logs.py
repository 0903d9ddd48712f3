"""Logs of a failed cluster, saved before its deletion removes them.

`logs/<cluster_name>/<time of the last change>-<status>/` of the bucket gets the library's failure codes, the
stack's events, the head node's console and the ends of its logs. `missing.txt` names those that could not be
read; `failures.json` is written last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import boto3
import library
import messages
from botocore.exceptions import BotoCoreError, ClientError
from cluster_state import ClusterState
from errors import ClusterNotFoundError, RefusedError, TransientError

_LOG_LINES = 500
_LAST = "failures.json"
_BEGINNINGS = {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"}
# Logs of the head node that show why it did not start; the others stay in CloudWatch.
_LOGS = ("bootstrap_error_msg", "cfn-init", "chef-client", "cloud-init-output", "clustermgtd", "slurmctld")
_ERRORS = (
    ClusterNotFoundError,
    TransientError,
    RefusedError,
    BotoCoreError,
    ClientError,
)


def failure(cluster_name: str, state: ClusterState) -> RuntimeError:
    """Save the logs of a failed cluster, and return the error to raise, which explains the failure."""
    saved_to = save(cluster_name, state)
    return RuntimeError(
        messages.failure(
            cluster_name,
            state,
            events=_failed_events(cluster_name),
            log_group=_log_group(cluster_name),
            saved_to=saved_to,
        )
    )


def _failed_events(cluster_name: str) -> list[str]:
    """Return the failures of the cluster's own stack, the first one first; empty if AWS does not answer."""
    try:
        events = library.stack_events(cluster_name)
    except _ERRORS as error:
        print(f"{cluster_name}: its stack's events are unknown: {error}")
        return []
    failed = [e for e in _last_operation(events) if str(e.get("resourceStatus")).endswith("_FAILED")]
    return [f"{e.get('logicalResourceId')}: {e.get('resourceStatusReason')}" for e in reversed(failed)]


def _last_operation(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the events back to the one that began the stack's creation, update or deletion."""
    for event in events:
        yield event
        is_stack = event.get("physicalResourceId") == event.get("stackId")
        if is_stack and event.get("resourceStatus") in _BEGINNINGS:
            return


def _log_group(cluster_name: str) -> str | None:
    try:
        return library.log_group(cluster_name)
    except _ERRORS as error:
        print(f"{cluster_name}: its log group is unknown: {error}")
        return None


def save(cluster_name: str, state: ClusterState) -> str | None:
    """Save the logs once for each failure; return the folder's URL, or None if the bucket refused a file."""
    bucket = os.environ["LOGS_BUCKET"]
    folder = f"logs/{cluster_name}/{state.changed.replace(':', '-')}-{state.stack_status}"
    url = f"s3://{bucket}/{folder}/"
    s3 = boto3.client("s3")
    try:
        if s3.list_objects_v2(Bucket=bucket, Prefix=f"{folder}/{_LAST}").get("KeyCount"):
            return url
        missing = list[str]()
        for name, collect in _collectors(cluster_name, state).items():
            try:
                text = collect()
            except _ERRORS as error:
                missing.append(f"{name}: {error}")
                continue
            s3.put_object(Bucket=bucket, Key=f"{folder}/{name}", Body=text.encode())
        if missing:
            s3.put_object(Bucket=bucket, Key=f"{folder}/missing.txt", Body="\n".join(missing).encode())
        found = {"status": state.stack_status, "failures": state.failures}
        text = json.dumps(found, indent=2, default=str)
        s3.put_object(Bucket=bucket, Key=f"{folder}/{_LAST}", Body=text.encode())
    except (BotoCoreError, ClientError) as error:
        print(f"{cluster_name}: the failure's logs could not be saved to {url}: {error}")
        return None
    print(f"{cluster_name}: the failure's logs are in {url}")
    return url


def _collectors(cluster_name: str, state: ClusterState) -> dict[str, Callable[[], str]]:
    collectors: dict[str, Callable[[], str]] = {
        "stack-events.json": lambda: json.dumps(library.stack_events(cluster_name), indent=2, default=str),
        "console-output.txt": lambda: _console(state.head_node_instance_id),
    }
    try:
        streams = library.head_node_log_streams(cluster_name)
    except _ERRORS as error:
        return {**collectors, "head-node-logs": partial(_fail, error)}
    for stream in streams:
        if (log := stream.rpartition(".")[2]) in _LOGS:
            collectors[f"{log}.log"] = partial(library.log_tail, cluster_name, stream, lines=_LOG_LINES)
    return collectors


def _fail(error: Exception) -> str:
    raise error


def _console(instance_id: str | None) -> str:
    if not instance_id:
        return "The cluster had no head node."
    ec2 = boto3.client("ec2")
    answer: dict[str, Any]
    try:
        answer = ec2.get_console_output(InstanceId=instance_id, Latest=True)
    except ClientError as error:
        if error.response["Error"]["Code"] != "UnsupportedOperation":  # of instances that are not on Nitro
            raise
        answer = ec2.get_console_output(InstanceId=instance_id)
    return str(answer.get("Output") or "EC2 had no console output yet.")
