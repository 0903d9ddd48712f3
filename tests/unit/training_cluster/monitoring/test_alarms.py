"""Alarms: when they go off, and to whom they write."""

from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match

from tests.unit.training_cluster.monitoring.monitored import EMAIL, LIBRARY, alarms, monitored, stack_of, text
from training_cluster.catalog.metrics_costs import ALARM_METRICS
from training_cluster.monitoring.metrics import LAUNCH_FAILURES
from training_cluster.paths import ASSETS


def test_silence_is_an_alarm_for_head_nodes() -> None:
    found = {name: each["TreatMissingData"] for name, each in alarms(monitored()).items()}
    assert found == {
        **{"HeadNodeDead": "breaching", "SchedulerSilent": "breaching", "LustreFull": "missing"},
        **{"NodesNotStarting": "notBreaching", "CheckBraked": "notBreaching"},
    }


def test_the_heartbeats_alarm_is_as_the_librarys() -> None:
    alarm = alarms(monitored())["SchedulerSilent"]
    source = (LIBRARY / "templates" / "cluster_stack.py").read_text()
    theirs = source.partition("metrics_for_alarms[CW_METRICS_CLUSTERMGTD_HEARTBEAT] = {")[2].partition("}\n")[
        0
    ]
    assert f'"evaluation_periods": {alarm["EvaluationPeriods"]}' in theirs
    assert f'"threshold": {alarm["Threshold"]}' in theirs
    assert alarm["ComparisonOperator"] == "LessThanThreshold" and "LESS_THAN_THRESHOLD" in theirs


def test_a_node_without_a_start_alarms() -> None:
    alarm = alarms(monitored())["NodesNotStarting"]
    expression, *stats = alarm["Metrics"]
    # A missing value counts as 0 with `+`, which is documented; with SUM() it is not.
    assert expression["Expression"].split(" + ") == [each["Id"] for each in stats]
    assert {each["MetricStat"]["Metric"]["MetricName"] for each in stats} == set(LAUNCH_FAILURES)
    assert len(stats) <= 10, "CloudWatch's limit of an alarm"
    assert (alarm["Threshold"], alarm["DatapointsToAlarm"]) == (0, 1)
    braked = alarms(monitored())["CheckBraked"]
    published = (ASSETS / "bootstrap" / "metrics" / "head_node.py").read_text()
    assert f'"{braked["MetricName"]}"' in published
    assert braked["Threshold"] == 0


def test_the_price_counts_the_metrics_of_alarms() -> None:
    found = alarms(monitored()).values()
    stats = [sum("MetricStat" in each for each in alarm.get("Metrics", [])) or 1 for alarm in found]
    assert sum(stats) == ALARM_METRICS


@pytest.mark.parametrize("metrics", ["cloudwatch", "prometheus"])
def test_alerts_without_a_store_are_listed(metrics: str) -> None:
    infos = Annotations.from_stack(stack_of((("metrics", metrics),)))
    check = infos.has_info if metrics == "cloudwatch" else infos.has_no_info
    check("*", Match.string_like_regexp("-c metrics=prometheus adds GpusIdleInJob"))


def test_every_alarm_writes_to_the_address_alone() -> None:
    template = monitored()
    assert all("AlarmActions" not in alarm for alarm in alarms(template).values())
    template.resource_count_is("AWS::SNS::Topic", 0)
    template = monitored(alarm_email=EMAIL)
    ((topic, _),) = template.find_resources("AWS::SNS::Topic").items()
    assert all(alarm["AlarmActions"] == [{"Ref": topic}] for alarm in alarms(template).values())
    target = {"Protocol": "email", "Endpoint": EMAIL, "TopicArn": {"Ref": topic}}
    template.has_resource_properties("AWS::SNS::Subscription", target)
    infos = Annotations.from_stack(stack_of((("alarm_email", EMAIL),)))
    infos.has_info("*", Match.string_like_regexp("Until somebody follows the link"))


def test_alarms_of_this_cluster_alone_may_publish() -> None:
    template = monitored(alarm_email=EMAIL)
    (policy,) = template.find_resources("AWS::SNS::TopicPolicy").values()
    _, allow = policy["Properties"]["PolicyDocument"]["Statement"]
    assert (allow["Effect"], allow["Principal"]) == ("Allow", {"Service": "cloudwatch.amazonaws.com"})
    assert allow["Action"] == "sns:Publish"
    assert allow["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    prefix = text(allow["Condition"]["ArnLike"]["aws:SourceArn"]).rpartition(":")[2].removesuffix("*")
    names = [each["AlarmName"] for each in alarms(template).values()]
    assert names and all(name.startswith(prefix) for name in names)
    others = [each["AlarmName"] for each in alarms(monitored(cluster_name="training-b")).values()]
    assert not any(name.startswith(prefix) for name in others)


def test_the_stack_watches_its_head_node_and_lustre(synthesise: Any) -> None:
    template = synthesise()["TrainingClusterStack"]
    found = alarms(template)
    (dimension,) = found["HeadNodeDead"]["Dimensions"]
    cluster, attribute = dimension["Value"]["Fn::GetAtt"]
    assert cluster in template.find_resources("Custom::TrainingCluster")
    assert attribute == "HeadNodeInstanceId"
    assert "TrainingCluster-Storage" in str(found["LustreFull"]["Metrics"])
