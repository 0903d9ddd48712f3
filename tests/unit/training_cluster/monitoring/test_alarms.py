"""Alarms: when they go off, and to whom they write."""

from collections.abc import Callable

import pytest
from aws_cdk.assertions import Annotations, Match, Template

from tests.unit.training_cluster.monitoring.monitored import (
    EMAIL,
    HEAD_NODE,
    LIBRARY,
    alarms,
    monitored,
    stack_of,
    text,
)
from training_cluster.catalog.metrics_costs import ALARM_METRICS
from training_cluster.monitoring.metrics import LAUNCH_FAILURES
from training_cluster.paths import ASSETS

Synthesise = Callable[..., dict[str, Template]]


def test_a_head_node_that_is_stopped_is_a_dead_one() -> None:
    alarm = alarms(monitored())["HeadNodeDead"]
    assert (alarm["Namespace"], alarm["MetricName"]) == ("AWS/EC2", "StatusCheckFailed")
    assert alarm["TreatMissingData"] == "breaching"
    assert alarm["Dimensions"] == [{"Name": "InstanceId", "Value": HEAD_NODE}]


def test_the_heartbeats_alarm_is_as_patient_as_the_librarys() -> None:
    alarm = alarms(monitored())["SchedulerSilent"]
    source = (LIBRARY / "templates" / "cluster_stack.py").read_text()
    theirs = source.partition("metrics_for_alarms[CW_METRICS_CLUSTERMGTD_HEARTBEAT] = {")[2].partition("}\n")[
        0
    ]
    assert f'"evaluation_periods": {alarm["EvaluationPeriods"]}' in theirs
    assert f'"threshold": {alarm["Threshold"]}' in theirs
    assert alarm["ComparisonOperator"] == "LessThanThreshold" and "LESS_THAN_THRESHOLD" in theirs
    assert alarm["TreatMissingData"] == "breaching" and "BREACHING" in theirs


def test_a_file_system_is_nearly_full_at_a_tenth_of_whatever_it_holds() -> None:
    alarm = alarms(monitored())["LustreFull"]
    assert alarm["Metrics"][0]["Expression"] == "100 * free / (free + used)"
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (10, "LessThanThreshold")
    assert {m["Id"]: m["MetricStat"]["Metric"]["MetricName"] for m in alarm["Metrics"][1:]} == {
        "free": "FreeDataStorageCapacity",
        "used": "PhysicalDiskUsage",
    }


def test_one_node_that_does_not_start_is_an_alarm_and_silence_is_none() -> None:
    alarm = alarms(monitored())["NodesNotStarting"]
    expression, *stats = alarm["Metrics"]
    # A missing value counts as 0 with `+`, which is documented; with SUM() it is not.
    assert expression["Expression"].split(" + ") == [each["Id"] for each in stats]
    assert {each["MetricStat"]["Metric"]["MetricName"] for each in stats} == set(LAUNCH_FAILURES)
    assert len(stats) <= 10, "CloudWatch's limit of an alarm"
    assert (alarm["Threshold"], alarm["DatapointsToAlarm"]) == (0, 1)
    assert alarm["TreatMissingData"] == "notBreaching"


def test_a_braked_health_check_is_an_alarm_by_the_metric_that_nodes_publish() -> None:
    alarm = alarms(monitored())["CheckBraked"]
    published = (ASSETS / "bootstrap" / "metrics" / "head_node.py").read_text()
    assert f'"{alarm["MetricName"]}"' in published
    assert (alarm["Threshold"], alarm["TreatMissingData"]) == (0, "notBreaching")


def test_the_price_counts_the_metrics_of_alarms() -> None:
    found = alarms(monitored()).values()
    stats = [sum("MetricStat" in each for each in alarm.get("Metrics", [])) or 1 for alarm in found]
    assert sum(stats) == ALARM_METRICS


@pytest.mark.parametrize("metrics", ["cloudwatch", "prometheus"])
def test_alerts_without_a_store_are_listed(metrics: str) -> None:
    infos = Annotations.from_stack(stack_of((("metrics", metrics),)))
    check = infos.has_info if metrics == "cloudwatch" else infos.has_no_info
    check("*", Match.string_like_regexp("-c metrics=prometheus adds GpusIdleInJob"))


def test_without_an_address_alarms_only_show() -> None:
    template = monitored()
    assert all("AlarmActions" not in alarm for alarm in alarms(template).values())
    template.resource_count_is("AWS::SNS::Topic", 0)
    template.resource_count_is("AWS::Budgets::Budget", 0)


def test_with_an_address_every_alarm_writes_to_it() -> None:
    template = monitored(alarm_email=EMAIL)
    ((topic, _),) = template.find_resources("AWS::SNS::Topic").items()
    assert all(alarm["AlarmActions"] == [{"Ref": topic}] for alarm in alarms(template).values())
    template.has_resource_properties(
        "AWS::SNS::Subscription", {"Protocol": "email", "Endpoint": EMAIL, "TopicArn": {"Ref": topic}}
    )
    stack = stack_of((("alarm_email", EMAIL),))
    Annotations.from_stack(stack).has_info("*", Match.string_like_regexp("Until somebody follows the link"))


def test_only_alarms_of_this_cluster_may_publish_and_only_over_tls() -> None:
    template = monitored(alarm_email=EMAIL)
    ((topic, _),) = template.find_resources("AWS::SNS::Topic").items()
    (policy,) = template.find_resources("AWS::SNS::TopicPolicy").values()
    assert policy["Properties"]["Topics"] == [{"Ref": topic}]
    deny, allow = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert (allow["Effect"], allow["Principal"]) == ("Allow", {"Service": "cloudwatch.amazonaws.com"})
    assert allow["Action"] == "sns:Publish"
    assert allow["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    source = text(allow["Condition"]["ArnLike"]["aws:SourceArn"])
    prefix = source.rpartition(":")[2].removesuffix("*")
    names = [a["Properties"]["AlarmName"] for a in template.find_resources("AWS::CloudWatch::Alarm").values()]
    assert names and all(name.startswith(prefix) for name in names)


def test_two_clusters_alarms_have_other_names_and_each_others_topics_are_closed() -> None:
    one, other = (
        {a["AlarmName"] for a in alarms(monitored(cluster_name=name)).values()} for name in ("a", "a-b")
    )
    assert not one & other
    assert not any(name.startswith("TrainingCluster_a_") for name in other)


def test_the_stack_watches_its_own_head_node_and_file_system(synthesise: Synthesise) -> None:
    template = synthesise()["TrainingClusterStack"]
    (dead,) = template.find_resources(
        "AWS::CloudWatch::Alarm", {"Properties": {"MetricName": "StatusCheckFailed"}}
    ).values()
    (dimension,) = dead["Properties"]["Dimensions"]
    cluster, attribute = dimension["Value"]["Fn::GetAtt"]
    assert cluster in template.find_resources("Custom::TrainingCluster")
    assert attribute == "HeadNodeInstanceId"
    (full,) = template.find_resources(
        "AWS::CloudWatch::Alarm", {"Properties": {"AlarmName": "TrainingCluster_training_LustreFull"}}
    ).values()
    assert "TrainingCluster-Storage" in str(full["Properties"]["Metrics"])
