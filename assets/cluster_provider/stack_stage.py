"""The current stage of a cluster's stack in one or two words, from the stack's events."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

_CLUSTER = "cluster resources"
_SIGNAL = "AWS::CloudFormation::WaitCondition"
"""Type of the resource that waits for the head node's signal, at its boot and at each update."""
# The first entry that the resource's type begins with decides.
_STAGES = {
    _SIGNAL: "head node booting",
    "AWS::EC2::Instance": "head node booting",
    "AWS::CloudFormation::Stack": "fleet",
    "AWS::EC2::LaunchTemplate": "fleet",
    "AWS::AutoScaling": "fleet",
    "AWS::FSx": "storage",
    "AWS::EFS": "storage",
    "AWS::EC2::Volume": "storage",
    "AWS::EC2": "network",
    "AWS::Route53": "network",
    "AWS::ElasticLoadBalancing": "network",
}


def current(events: Iterable[dict[str, Any]]) -> str:
    """Name the stage of the resource that is being created, updated or deleted now.

    Args:
        events: of the cluster's stack, the newest first, as `pcluster get-cluster-stack-events` lists them.
    """
    newest, ended = list(events), set[str]()
    of_stack = (str(event.get("resourceStatus")) for event in newest if _is_of_stack(event))
    updates = next(of_stack, "").startswith("UPDATE_")
    for event in newest:
        name, status = str(event.get("logicalResourceId")), str(event.get("resourceStatus"))
        if not status.endswith("_IN_PROGRESS"):
            ended.add(name)
        elif name not in ended and not _is_of_stack(event):
            type_ = str(event.get("resourceType"))
            if updates and type_ == _SIGNAL:
                return "head node applies the update"
            return next((stage for prefix, stage in _STAGES.items() if type_.startswith(prefix)), _CLUSTER)
    return _CLUSTER


def _is_of_stack(event: dict[str, Any]) -> bool:
    return event.get("physicalResourceId") == event.get("stackId")
