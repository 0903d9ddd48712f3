"""The running jobs of a cluster, as its head node lists them through Systems Manager."""

from __future__ import annotations

import secrets
import time
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

# ParallelCluster installs Slurm in /opt/slurm, which is not in the PATH of Systems Manager's commands.
_COMMAND = "PATH=$PATH:/opt/slurm/bin squeue --noheader --states=RUNNING --format='%i %j (%u, %M){}'"
_ENDED = {"Success", "Failed", "Cancelled", "TimedOut"}
_POLLS, _POLL_S = 10, 2.0
# This module does not wait longer, and the agent of the head node has only five workers. SendCommand
# accepts at least 30.
_DELIVERY_S, _EXECUTION_S = 30, 20


def running(head_node_instance_id: str | None) -> list[str] | None:
    """List the running jobs as `id name (user, time)`; None if the head node does not answer."""
    if not head_node_instance_id:
        return None
    ssm = boto3.client("ssm")
    # The name of a job may have line ends, but no word that is random in each call.
    end = f"/{secrets.token_hex(8)}/"
    try:
        command = ssm.send_command(
            InstanceIds=[head_node_instance_id],
            DocumentName="AWS-RunShellScript",
            TimeoutSeconds=_DELIVERY_S,
            Parameters={"commands": [_COMMAND.format(end)], "executionTimeout": [str(_EXECUTION_S)]},
        )["Command"]["CommandId"]
        answer = _wait(ssm, command, head_node_instance_id)
    except (ClientError, BotoCoreError) as error:
        print(f"{head_node_instance_id}: its jobs are unknown: {error}")
        return None
    if answer.get("Status") != "Success":
        print(f"{head_node_instance_id}: squeue gave no list: {answer}")
        return None
    # Systems Manager cuts a long answer, so what has no end is no job.
    *jobs, _ = answer["StandardOutputContent"].split(end)
    return [" ".join(job.split()) for job in jobs]


def _wait(ssm: Any, command: str, instance_id: str) -> dict[str, Any]:
    """Return the last answer about a command, which may not have ended; empty if there was none."""
    answer: dict[str, Any] = {}
    for _ in range(_POLLS):
        time.sleep(_POLL_S)
        try:
            answer = ssm.get_command_invocation(CommandId=command, InstanceId=instance_id)
        except ClientError as error:
            # For a moment after a command was sent, Systems Manager does not know it.
            if error.response["Error"]["Code"] != "InvocationDoesNotExist":
                raise
        if answer.get("Status") in _ENDED:
            break
    return answer
