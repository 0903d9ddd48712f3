"""Checks of the deploy itself: its time, and rights that were missing."""

from __future__ import annotations

import re
from typing import Any

from ops.account.clusters import Cluster
from ops.account.session import ClientOf
from ops.verify.check import Check

_MOST_MINUTES = 20
_DENIED = re.compile(r"AccessDenied|not authorized|UnauthorizedOperation", re.IGNORECASE)


def _events(cluster: Cluster, client: ClientOf) -> list[dict[str, Any]]:
    """Return the events of ParallelCluster's stack, which has the cluster's name."""
    pages = client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=cluster.name)
    return [each for page in pages for each in page["StackEvents"]]


def _created_in_time(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    own = [each for each in _events(cluster, client) if each.get("PhysicalResourceId") == each["StackId"]]
    begun = min(each["Timestamp"] for each in own if each["ResourceStatus"] == "CREATE_IN_PROGRESS")
    ended = min(each["Timestamp"] for each in own if each["ResourceStatus"] == "CREATE_COMPLETE")
    minutes = (ended - begun).total_seconds() / 60
    return minutes <= _MOST_MINUTES, f"{minutes:.1f} minutes"


def _nothing_denied(cluster: Cluster, client: ClientOf) -> tuple[bool, str]:
    events = _events(cluster, client)
    denied = {
        each["ResourceType"] for each in events if _DENIED.search(each.get("ResourceStatusReason") or "")
    }
    return not denied, ", ".join(sorted(denied)) or f"none in {len(events)} events"


CHECKS = (
    Check(
        id="cluster-stack-time",
        claim="ParallelCluster's stack is created in 10 to 20 minutes.",
        expected=f"at most {_MOST_MINUTES} minutes",
        not_in_rehearsal="The time: the local head node signals at once.",
        look=_created_in_time,
    ),
    Check(
        id="denied-calls",
        claim="The provider's rights (docs/permissions.md) suffice for ParallelCluster's stack.",
        expected="no event with a denied call",
        not_in_rehearsal="Rights that no table has, and an organisation's policies.",
        look=_nothing_denied,
    ),
)
