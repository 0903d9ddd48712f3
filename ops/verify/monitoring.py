"""Checks of the alarms, the dashboard, and the metrics that it draws."""

import json
from typing import Any

from ops.account.session import every
from ops.account.stacks import outputs_of
from ops.verify.check import Check
from ops.verify.scene import Scene, UnseenError

# Namespaces with data while the head node runs: EC2, ParallelCluster's agent and filters, and our timers.
_ALWAYS = ("AWS/EC2", "AWS/FSx", "CWAgent", "ParallelCluster", "TrainingCluster")


def _alarms_are_quiet(scene: Scene) -> tuple[bool, str]:
    prefix = f"TrainingCluster_{scene.cluster.name}_"
    cloudwatch = scene.client("cloudwatch")
    alarms = [*every(cloudwatch, "describe_alarms", "MetricAlarms", AlarmNamePrefix=prefix)]
    ringing = sorted(
        each["AlarmName"].removeprefix(prefix) for each in alarms if each["StateValue"] == "ALARM"
    )
    shown = f"{len(alarms)} alarms" + (f"; in alarm: {', '.join(ringing)}" if ringing else "")
    return bool(alarms) and not ringing, shown


def _drawn(scene: Scene) -> list[tuple[str, str]]:
    """Return namespace and name of each metric that the dashboard draws. Raises UnseenError without one."""
    outputs = outputs_of(scene.stack(scene.cluster.stack_name))
    if "Dashboard" not in outputs:
        raise UnseenError("the cluster's stack names no dashboard")
    answer = scene.client("cloudwatch").get_dashboard(DashboardName=outputs["Dashboard"])
    widgets: list[dict[str, Any]] = json.loads(answer["DashboardBody"])["widgets"]
    rows = [row for widget in widgets for row in widget["properties"].get("metrics", [])]
    # A row without a namespace is an expression.
    return [(row[0], row[1]) for row in rows if isinstance(row[0], str)]


def _dashboard_exists(scene: Scene) -> tuple[bool, str]:
    drawn = _drawn(scene)
    return bool(drawn), f"draws {len(drawn)} metrics"


def _metrics_have_data(scene: Scene) -> tuple[bool, str]:
    drawn = _drawn(scene)
    namespaces = [each for each in _ALWAYS if each in {namespace for namespace, _ in drawn}]
    if not namespaces:
        raise UnseenError("the dashboard draws none of the metrics that always have data")
    empty = []
    for namespace in namespaces:
        # CloudWatch finds metrics with data of the last three hours only.
        asked = {"Namespace": namespace, "RecentlyActive": "PT3H"}
        found = every(scene.client("cloudwatch"), "list_metrics", "Metrics", **asked)
        seen = {each["MetricName"] for each in found}
        if not seen & {name for own, name in drawn if own == namespace}:
            empty.append(namespace)
    return not empty, f"without data: {', '.join(empty)}" if empty else f"data in {', '.join(namespaces)}"


CHECKS = (
    Check(
        id="alarms",
        claim="The cluster's alarms exist, and none is in alarm.",
        expected="at least one alarm, all quiet",
        not_in_rehearsal="Metrics: nothing is measured, so no alarm changes.",
        look=_alarms_are_quiet,
    ),
    Check(
        id="dashboard",
        claim="The cluster's dashboard exists.",
        expected="it draws metrics",
        not_in_rehearsal="The picture: CloudWatch draws it.",
        look=_dashboard_exists,
    ),
    Check(
        id="metrics",
        claim="The dashboard's metrics have data: the agent, ParallelCluster and our timers publish.",
        expected=f"data of the last 3 hours in {', '.join(_ALWAYS)}",
        not_in_rehearsal="Metrics: nothing is measured.",
        look=_metrics_have_data,
        only_on_aws=True,
    ),
)
