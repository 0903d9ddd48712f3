"""Stands in for a cluster's head node: publishes the fleet's status and signals that it is up.

On AWS the head node runs ParallelCluster's chef recipes for some 10 minutes, writes the fleet's
status to the cluster's DynamoDB table and signals the stack's WaitCondition.
"""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from typing import Any

import boto3

from rehearsal.local_aws import hooks
from rehearsal.local_aws.address import LocalAwsAddress

_LOGICAL_ID = "HeadNodeWaitCondition"


def install(address: LocalAwsAddress) -> None:
    """Boot a stand-in whenever a head node's WaitCondition starts to wait."""

    def make(original: Callable[..., Any]) -> Callable[..., Any]:
        def wait_for(token: str, stack_id: str, stack_name: str, logical_id: str, *rest: Any) -> Any:
            if logical_id.startswith(_LOGICAL_ID):
                boot = threading.Thread(target=_boot, args=(address, token, stack_name), daemon=True)
                boot.start()
            return original(token, stack_id, stack_name, logical_id, *rest)

        return wait_for

    hooks.replace(hooks.WAIT_CONDITION, make)


def _boot(address: LocalAwsAddress, token: str, cluster_name: str) -> None:
    signal = hooks.find(hooks.SIGNAL)
    try:
        _publish_fleet_status(address, cluster_name)
    except Exception as error:
        reason = f"the stand-in for the head node failed: {error}"
        signal(token, {"Status": "FAILURE", "Reason": reason, "UniqueId": "head-node", "Data": reason})
        raise
    signal(token, {"Status": "SUCCESS", "Reason": "emulated", "UniqueId": "head-node", "Data": "emulated"})


def _publish_fleet_status(address: LocalAwsAddress, cluster_name: str) -> None:
    now = datetime.datetime.now(datetime.UTC).isoformat()
    status = {"status": {"S": "RUNNING"}, "lastStatusUpdatedTime": {"S": now}}
    client = boto3.client("dynamodb", endpoint_url=address.url, verify=str(address.certificate))
    client.put_item(
        TableName=f"parallelcluster-{cluster_name}",
        Item={"Id": {"S": "COMPUTE_FLEET"}, "Data": {"M": status}},
    )
