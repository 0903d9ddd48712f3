"""Checks of the deploy itself: its times, calls that were denied, and the provider's library."""

import datetime
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ops.account.aws_errors import DENIED
from ops.account.session import every
from ops.verify.check import Check, Look
from ops.verify.scene import Scene, UnseenError
from training_cluster.catalog.families import load_base
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STORAGE_STACK

_WAIT = "AWS::CloudFormation::WaitCondition"
_DENIED = re.compile(r"AccessDenied|not authorized|UnauthorizedOperation", re.IGNORECASE)
_PYTHON = "python3.12"
# LookupEvents allows two requests a second; a function's newest calls suffice.
_MOST_EVENTS = 200


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Expected time of a stack's creation: an estimate, since none was measured."""

    id: str
    stack: str
    """Name in CloudFormation; empty for the cluster's own stack, PCLUSTER for ParallelCluster's."""
    most_minutes: int
    reason: str


PCLUSTER = "ParallelCluster"
STACK_TIMES = (
    Expected(
        id="network-stack-time", stack=NETWORK_STACK, most_minutes=8, reason="a NAT gateway takes minutes"
    ),
    Expected(
        id="storage-stack-time",
        stack=STORAGE_STACK,
        most_minutes=30,
        reason="about 10 minutes for Lustre, then its two links, one after the other",
    ),
    Expected(
        id="accounting-stack-time", stack=ACCOUNTING_STACK, most_minutes=20, reason="an Aurora instance"
    ),
    Expected(
        id="cluster-stack-time",
        stack=PCLUSTER,
        most_minutes=20,
        reason="10 to 20 minutes for the head node (docs/rehearsal.md)",
    ),
    Expected(
        id="own-stack-time",
        stack="",
        most_minutes=30,
        reason="ParallelCluster's stack, and what the provider does before and after it",
    ),
)
"""The one table of expected times."""


def _name(expected: Expected, scene: Scene) -> str:
    return {"": scene.cluster.stack_name, PCLUSTER: scene.cluster.name}.get(expected.stack, expected.stack)


def _minutes(events: list[dict[str, Any]]) -> float | None:
    """Return the time between the first two states of a creation; None without both."""
    times: dict[str, datetime.datetime] = {}
    for each in events:
        times[each["ResourceStatus"]] = min(
            each["Timestamp"], times.get(each["ResourceStatus"], each["Timestamp"])
        )
    if "CREATE_IN_PROGRESS" not in times or "CREATE_COMPLETE" not in times:
        return None
    return (times["CREATE_COMPLETE"] - times["CREATE_IN_PROGRESS"]).total_seconds() / 60


def _created_in_time(expected: Expected) -> Look:
    def look(scene: Scene) -> tuple[bool, str]:
        events = scene.events(_name(expected, scene))
        if not events:
            return True, "no such stack: these flags need none"
        minutes = _minutes([each for each in events if each.get("PhysicalResourceId") == each["StackId"]])
        if minutes is None:
            raise UnseenError("its creation is not among its events")
        return minutes <= expected.most_minutes, f"{minutes:.1f} minutes"

    return look


def _head_node_in_time(scene: Scene) -> tuple[bool, str]:
    events = [each for each in scene.events(scene.cluster.name) if each["ResourceType"] == _WAIT]
    minutes = _minutes([each for each in events if "HeadNode" in each["LogicalResourceId"]])
    if minutes is None:
        raise UnseenError("ParallelCluster's stack has no events of the head node's wait condition")
    return minutes * 60 <= load_base().head_node.bootstrap_timeout_s / 2, f"{minutes:.1f} minutes"


def _nothing_denied(scene: Scene) -> tuple[bool, str]:
    names = [_name(each, scene) for each in STACK_TIMES]
    events = [each for name in names for each in scene.events(name)]
    denied = {
        each["ResourceType"] for each in events if _DENIED.search(each.get("ResourceStatusReason") or "")
    }
    return not denied, ", ".join(sorted(denied)) or f"none in {len(events)} events"


def _denied_of(function: str, scene: Scene) -> Iterator[str]:
    """Yield `SERVICE:ACTION` for each denied call of a function: Lambda's sessions have its name."""
    begin = scene.stack(scene.cluster.stack_name)["CreationTime"]
    events = every(
        *(scene.client("cloudtrail"), "lookup_events", "Events"),
        LookupAttributes=[{"AttributeKey": "Username", "AttributeValue": function}],
        StartTime=begin,
        PaginationConfig={"MaxItems": _MOST_EVENTS},
    )
    for event in events:
        call: dict[str, Any] = json.loads(event["CloudTrailEvent"])
        if call.get("errorCode") in DENIED:
            yield f"{call['eventSource'].split('.')[0]}:{call['eventName']}"


def _trail_has_no_denied_call(scene: Scene) -> tuple[bool, str]:
    functions = scene.ids(scene.cluster.stack_name, "AWS::Lambda::Function")
    if not functions:
        raise UnseenError("the cluster's stack has no functions")
    denied = sorted({call for function in functions for call in _denied_of(function, scene)})
    return not denied, ", ".join(denied) or f"none by {len(functions)} functions"


def _ran_the_library(scene: Scene) -> tuple[bool, str]:
    tags = {each["Key"]: each["Value"] for each in scene.stack(scene.cluster.name).get("Tags", [])}
    version = tags.get("parallelcluster:version", "no version")
    return version == PCLUSTER_VERSION, f"ParallelCluster's stack is tagged {version}"


def _has_the_layer(scene: Scene) -> tuple[bool, str]:
    layers = scene.ids(scene.cluster.stack_name, "AWS::Lambda::LayerVersion")
    if not layers:
        raise UnseenError("the cluster's stack has no layer")
    layer = scene.client("lambda").get_layer_version_by_arn(Arn=layers[0])
    size_mib = layer["Content"].get("CodeSize", 0) / 2**20
    pythons = layer.get("CompatibleRuntimes", [])
    description = layer.get("Description", "no description")
    is_held = description.startswith(f"aws-parallelcluster {PCLUSTER_VERSION},") and _PYTHON in pythons
    return is_held and size_mib > 1, f"{description}; {size_mib:.0f} MiB; {', '.join(pythons)}"


def _stack_time_checks() -> Iterator[Check]:
    for each in STACK_TIMES:
        names = {"": "The cluster's own stack", PCLUSTER: "ParallelCluster's stack"}
        yield Check(
            id=each.id,
            claim=f"{names.get(each.stack, each.stack)} is created in time: {each.reason}.",
            expected=f"at most {each.most_minutes} minutes (an estimate)",
            not_in_rehearsal="The time: resources are records, and the local head node signals at once.",
            look=_created_in_time(each),
        )


CHECKS = (
    *_stack_time_checks(),
    Check(
        id="head-node-time",
        claim="The head node signals within half of its time limit, so the limit leaves room.",
        expected=f"at most {load_base().head_node.bootstrap_timeout_s / 120:g} minutes",
        not_in_rehearsal="The time: the local head node signals at once.",
        look=_head_node_in_time,
        only_on_aws=True,
    ),
    Check(
        id="denied-calls",
        claim="The provider's rights (docs/permissions.md) suffice for the stacks.",
        expected="no stack event with a denied call",
        not_in_rehearsal="Permissions that the table lacks, and an organisation's policies.",
        look=_nothing_denied,
    ),
    Check(
        id="library-version",
        claim="The provider's layer has the ParallelCluster library of this version: it created the stack.",
        expected=f"tagged {PCLUSTER_VERSION}",
        not_in_rehearsal="The hosted layer: the library is this machine's .venv-pcluster.",
        look=_ran_the_library,
    ),
    Check(
        id="layer",
        claim="The provider's layer is complete, and built for the Python of its functions.",
        expected=f"aws-parallelcluster {PCLUSTER_VERSION}, more than 1 MiB, {_PYTHON}",
        not_in_rehearsal="AWS's file: the local layer contains this machine's library instead.",
        look=_has_the_layer,
        only_on_aws=True,
    ),
    Check(
        id="denied-calls-trail",
        claim="No call of the cluster's functions was denied, as CloudTrail records them.",
        expected=f"none among each function's newest {_MOST_EVENTS} calls",
        not_in_rehearsal="CloudTrail; a rehearsal judges these calls itself, and fails on a denied one.",
        look=_trail_has_no_denied_call,
        only_on_aws=True,
    ),
)
