"""The running jobs of a cluster, as its head node lists them through Systems Manager."""

from __future__ import annotations

import time

import boto3
from botocore.exceptions import BotoCoreError, ClientError

# ParallelCluster installs Slurm in /opt/slurm, which is not in the PATH of Systems Manager's commands.
_COMMAND = "PATH=$PATH:/opt/slurm/bin squeue --noheader --states=RUNNING --format='%i %j (%u, %M)'"
_ENDED = {"Success", "Failed", "Cancelled", "TimedOut"}
_POLLS, _POLL_S = 10, 2.0
# This module waits no longer, and the head node's agent has only five workers. SendCommand takes at least 30.
_DELIVERY_S, _EXECUTION_S = 30, 20


def running(head_node_instance_id: str | None) -> list[str] | None:
    """List the running jobs as `id name (user, time)`; None if the head node does not answer."""
    if not head_node_instance_id:
        return None
    ssm = boto3.client("ssm")
    try:
        command = ssm.send_command(
            InstanceIds=[head_node_instance_id],
            DocumentName="AWS-RunShellScript",
            TimeoutSeconds=_DELIVERY_S,
            Parameters={"commands": [_COMMAND], "executionTimeout": [str(_EXECUTION_S)]},
        )["Command"]["CommandId"]
        for _ in range(_POLLS):
            time.sleep(_POLL_S)
            answer = ssm.get_command_invocation(CommandId=command, InstanceId=head_node_instance_id)
            if answer["Status"] in _ENDED:
                break
    except (ClientError, BotoCoreError) as error:
        print(f"{head_node_instance_id}: its jobs are unknown: {error}")
        return None
    if answer["Status"] != "Success":
        print(
            f"{head_node_instance_id}: squeue ended as {answer['Status']}: {answer['StandardErrorContent']}"
        )
        return None
    return [line.strip() for line in answer["StandardOutputContent"].splitlines() if line.strip()]
