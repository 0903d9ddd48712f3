"""Check of denied calls in CloudTrail, which records those that no stack event names."""

import json
from collections.abc import Iterator
from typing import Any

from ops.account.aws_errors import DENIED
from ops.account.session import every
from ops.verify.check import Check
from ops.verify.scene import Scene, UnseenError

# LookupEvents allows two requests a second; a function's newest calls suffice.
_MOST_EVENTS = 200


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


CHECKS = (
    Check(
        id="denied-calls-trail",
        claim="No call of the cluster's functions was denied, as CloudTrail records them.",
        expected=f"none among each function's newest {_MOST_EVENTS} calls",
        not_in_rehearsal="CloudTrail; a rehearsal judges these calls itself, and fails on a denied one.",
        look=_trail_has_no_denied_call,
        only_on_aws=True,
    ),
)
