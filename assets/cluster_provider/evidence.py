"""Saves what shows why a cluster failed, before its deletion takes that away.

To `logs/<cluster_name>/<time of the last change>-<status>/` of the bucket: the library's failure codes, the
stack's events, the head node's console and the ends of its logs. What cannot be had is named in
`missing.txt`; `failures.json` is written last.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from typing import Any

import boto3
import library
import messages
from answers import ClusterNotFoundError, ClusterState, RefusedError, TransientError
from botocore.exceptions import BotoCoreError, ClientError

_LOG_LINES = 500
_LAST = "failures.json"
_BEGINNINGS = {"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"}
# Of the head node, the ones that tell why it did not come up; the rest stays in CloudWatch.
_LOGS = ("bootstrap_error_msg", "cfn-init", "chef-client", "cloud-init-output", "clustermgtd", "slurmctld")
_ERRORS = (
    ClusterNotFoundError,
    TransientError,
    RefusedError,
    BotoCoreError,
    ClientError,
)


def failure(cluster_name: str, state: ClusterState) -> RuntimeError:
    """Save what shows the failure, and explain it; to be raised."""
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
    """What failed in the cluster's own stack, first things first; empty when AWS does not say."""
    try:
        events = library.stack_events(cluster_name)
    except _ERRORS as error:
        print(f"{cluster_name}: its stack's events are unknown: {error}")
        return []
    failed = [e for e in _of_the_last_operation(events) if str(e.get("resourceStatus")).endswith("_FAILED")]
    return [f"{e.get('logicalResourceId')}: {e.get('resourceStatusReason')}" for e in reversed(failed)]


def _of_the_last_operation(events: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Down to the event with which the stack itself began to be made, changed or deleted."""
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
    """Save all that there is, once for each cluster; where it lies, or None if the bucket took nothing."""
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
        s3.put_object(Bucket=bucket, Key=f"{folder}/{_LAST}", Body=_failures(state).encode())
    except (BotoCoreError, ClientError) as error:
        print(f"{cluster_name}: what shows the failure could not be saved to {url}: {error}")
        return None
    print(f"{cluster_name}: what shows the failure is in {url}")
    return url


def _collectors(cluster_name: str, state: ClusterState) -> dict[str, Callable[[], str]]:
    def events() -> str:
        return json.dumps(library.stack_events(cluster_name), indent=2, default=str)

    def console() -> str:
        return _console(state.head_node_instance_id)

    def tail(stream: str) -> Callable[[], str]:
        return lambda: library.log_tail(cluster_name, stream, lines=_LOG_LINES)

    collectors = {"stack-events.json": events, "console-output.txt": console}
    try:
        streams = library.head_node_log_streams(cluster_name)
    except _ERRORS as error:
        reason = str(error)

        def no_logs() -> str:
            raise RefusedError({"message": reason})

        return {**collectors, "head-node-logs": no_logs}
    wanted = [stream for stream in streams if stream.rpartition(".")[2] in _LOGS]
    return collectors | {f"{stream.rpartition('.')[2]}.log": tail(stream) for stream in wanted}


def _failures(state: ClusterState) -> str:
    return json.dumps({"status": state.stack_status, "failures": state.failures}, indent=2, default=str)


def _console(instance_id: str | None) -> str:
    if not instance_id:
        return "There was no head node."
    ec2 = boto3.client("ec2")
    answer: dict[str, Any]
    try:
        answer = ec2.get_console_output(InstanceId=instance_id, Latest=True)
    except ClientError as error:
        if error.response["Error"]["Code"] != "UnsupportedOperation":  # of instances that are not on Nitro
            raise
        answer = ec2.get_console_output(InstanceId=instance_id)
    return str(answer.get("Output") or "EC2 had no console output yet.")
