"""Alarms on metric math and the log groups of functions, as CloudWatch takes and refuses them.

ministack's AWS::CloudWatch::Alarm refuses metric math; here such alarms are records.

Two kinds of log groups are not checked. ParallelCluster names a cluster's group by the minute and keeps it,
and here a cluster may be created twice in one minute. It also creates the groups of its own functions without
a dependency. On AWS these exist long before the roles with which the functions are called.
"""

import json
import re

from rehearsal.local_aws.cloudformation.handlers import before_create, original, wrap
from rehearsal.local_aws.emulators.ministack_client import client
from rehearsal.local_aws.emulators.moto_types import Created, Properties

_ALARM, _LOG_GROUP = "AWS::CloudWatch::Alarm", "AWS::Logs::LogGroup"
_OF_FUNCTIONS, _OF_PARALLELCLUSTER = "/aws/lambda/", "/aws/lambda/pcluster-"
_ID = re.compile(r"[a-z][A-Za-z0-9_]*")
# CloudWatch's limit of metrics in an alarm's expression.
_MOST_METRICS = 10


def install() -> None:
    """Accept `Metrics` instead of a metric's name, and refuse a function's log group that exists."""
    handler = original(_ALARM)

    def update(name: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
        created: Created = handler["update"](name, _named(old), _named(new), stack, logical_id)
        return created

    before_create(_ALARM, _named)
    wrap(_ALARM, update=update)
    before_create(_LOG_GROUP, _check_log_group)


def _named(properties: Properties) -> Properties:
    """Use the expression as the metric's name. No metric has this name, so nothing triggers the alarm."""
    queries = properties.get("Metrics")
    if not queries:
        return properties
    _check(queries)
    expression = next(query.get("Expression", "-") for query in queries if query.get("ReturnData", True))
    rest = {key: value for key, value in properties.items() if key != "Metrics"}
    return rest | {"Namespace": "metric math", "MetricName": expression}


def _check(queries: list[Properties]) -> None:
    """Refuse what PutMetricAlarm refuses; the messages are ours."""
    ids = [query.get("Id", "") for query in queries]
    if not all(_ID.fullmatch(id_) for id_ in ids) or len(set(ids)) < len(ids):
        raise ValueError(f"Metrics: each Id is a lower-case letter, then letters and digits, and once: {ids}")
    if [query.get("ReturnData", True) for query in queries].count(True) != 1:
        raise ValueError("Metrics: exactly one of them returns data")
    if sum("MetricStat" in query for query in queries) > _MOST_METRICS:
        raise ValueError(f"Metrics: {_MOST_METRICS} metrics at most")


def _check_log_group(properties: Properties) -> None:
    """Refuse a group that a first call has created already, which ministack replaces."""
    name = properties.get("LogGroupName") or ""
    checked = name.startswith(_OF_FUNCTIONS) and not name.startswith(_OF_PARALLELCLUSTER)
    if checked and _exists(name):
        identifier = json.dumps({"/properties/LogGroupName": name})
        raise ValueError(f"Resource of type '{_LOG_GROUP}' with identifier '{identifier}' already exists.")


def _exists(name: str) -> bool:
    found = client("logs").describe_log_groups(logGroupNamePrefix=name)["logGroups"]
    return name in [each["logGroupName"] for each in found]
