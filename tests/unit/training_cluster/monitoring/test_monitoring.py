"""Alarms, the budget and the mail of jobs: when they write, and to whom."""

from pathlib import Path
from typing import Any

import pytest
from aws_cdk.assertions import Annotations, Match

from tests.unit.resource_schemas import resource_schema
from tests.unit.sentences import assert_sentences
from tests.unit.training_cluster.monitoring.monitored import (
    EMAIL,
    LIBRARY,
    alarms,
    metrics_of,
    monitored,
    stack_of,
    text,
)
from training_cluster.flags.account import CLUSTER_TAG, REGIONS_WITHOUT_BUDGETS
from training_cluster.monitoring.published import LAUNCH_FAILURES, Published
from training_cluster.paths import ASSETS
from training_cluster.pcluster.check import config_before_deploy
from training_cluster.rules.context import read_settings
from training_cluster.stack_names import DEFAULT_CLUSTER


def test_silence_and_lost_starts_are_alarms() -> None:
    found = {name: each["TreatMissingData"] for name, each in alarms(monitored()).items()}
    assert found == {
        **{"HeadNodeDead": "breaching", "SchedulerSilent": "breaching", "LustreFull": "missing"},
        **{"NodesNotStarting": "notBreaching", "CheckBraked": "notBreaching"},
    }
    alarm = alarms(monitored())["SchedulerSilent"]
    source = (LIBRARY / "templates" / "cluster_stack.py").read_text()
    theirs = source.partition("metrics_for_alarms[CW_METRICS_CLUSTERMGTD_HEARTBEAT] = {")[2].partition("}\n")[
        0
    ]
    assert f'"evaluation_periods": {alarm["EvaluationPeriods"]}' in theirs
    assert f'"threshold": {alarm["Threshold"]}' in theirs
    assert alarm["ComparisonOperator"] == "LessThanThreshold" and "LESS_THAN_THRESHOLD" in theirs
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


SWITCHED_OFF = [
    ("{Alarms: {Enabled: false}}", {"SchedulerSilent"}),
    ("{Dashboards: {CloudWatch: {Enabled: false}}}", {"NodesNotStarting"}),
    ("{Logs: {CloudWatch: {Enabled: false}}}", {"SchedulerSilent", "NodesNotStarting"}),
]


@pytest.mark.parametrize(("section", "missing"), SWITCHED_OFF)
def test_no_alarm_needs_a_missing_filter(tmp_path: Path, section: str, missing: set[str]) -> None:
    file = tmp_path / "overrides.yaml"
    file.write_text(f"Monitoring: {section}\n")
    template = monitored(overrides=str(file))
    assert set(alarms(monitored())) - set(alarms(template)) == missing
    of = {"SchedulerSilent": {"ClustermgtdHeartbeat"}, "NodesNotStarting": set(LAUNCH_FAILURES)}
    shown = {name for namespace, name, _ in metrics_of(template) if namespace == "ParallelCluster"}
    assert shown == set().union(*(names for alarm, names in of.items() if alarm not in missing))
    said = Annotations.from_stack(stack_of((("overrides", str(file)),)))
    said.has_warning(
        "*", Match.string_like_regexp(f"no metric for {' and '.join(sorted(missing, reverse=True))}:")
    )


@pytest.mark.parametrize("section", ["{}", *(section for section, _ in SWITCHED_OFF)])
def test_the_price_counts_the_metrics_of_alarms(tmp_path: Path, section: str) -> None:
    file = tmp_path / "overrides.yaml"
    file.write_text(f"Monitoring: {section}\n")
    found = alarms(monitored(overrides=str(file))).values()
    stats = [sum("MetricStat" in each for each in alarm.get("Metrics", [])) or 1 for alarm in found]
    config = config_before_deploy(read_settings({"overrides": str(file)}))
    assert sum(stats) == Published.by(config).alarm_metrics


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


def _budget(**flags: str) -> dict[str, Any]:
    template = monitored(**{"budget_usd": "5000", "alarm_email": EMAIL, **flags})
    (budget,) = template.find_resources("AWS::Budgets::Budget").values()
    return dict(budget["Properties"])


def test_the_budget_counts_by_the_clusters_tag() -> None:
    """When it writes, and to whom: stacks/test_stacks_never_replaced.py."""
    budget = _budget()["Budget"]
    assert budget["CostFilters"] == {"TagKeyValue": [f"user:{CLUSTER_TAG}${DEFAULT_CLUSTER}"]}
    assert budget["BudgetLimit"] == {"Amount": 5000, "Unit": "USD"}
    assert (budget["BudgetType"], budget["TimeUnit"]) == ("COST", "MONTHLY")
    assert CLUSTER_TAG in {tag["Key"] for tag in config_before_deploy(read_settings({}))["Tags"]}
    names = [
        text(_budget(**flags)["Budget"]["BudgetName"])
        for flags in ({}, {"alarm_email": "you@example.com"}, {"cluster_name": "c" * 60}, {"budget_usd": "1"})
    ]
    assert (len({*names[:3]}), names[3]) == (3, names[0])
    assert all("-Region-" in name for name in names), "its names are the account's, for all regions"
    assert len(names[2].replace("Region", "ap-southeast-2")) <= 100, "AWS's limit"
    cannot_change = resource_schema("AWS::Budgets::Budget")["createOnlyProperties"]
    assert "/properties/NotificationsWithSubscribers" in cannot_change
    import cfnlint  # type: ignore[import-untyped]  # noqa: PLC0415 - most of a second

    providers = (Path(cfnlint.__file__).parent / "data" / "schemas" / "providers").glob("*.json")
    without = {each.stem for each in providers if '"AWS::Budgets::Budget"' not in each.read_text()}
    assert set(REGIONS_WITHOUT_BUDGETS) == without - {"sam"}
    said = Match.string_like_regexp(
        r"`aws ce update-cost-allocation-tags-status --region us-east-1 --cost-allocation-tags-status "
        r"TagKey=training-cluster:cluster,Status=Active`.*not what clusters share.*eu-north-1"
    )
    stack = stack_of((("alarm_email", EMAIL), ("budget_usd", "5000")))
    Annotations.from_stack(stack).has_warning("*", said)


def test_each_address_gets_the_mail_of_its_users() -> None:
    template = monitored(job_emails="ann=a@example.com,bob=a@example.com,team@example.com")
    subscriptions = [e["Properties"] for e in template.find_resources("AWS::SNS::Subscription").values()]
    assert {each["Protocol"] for each in subscriptions} == {"email"}
    assert {each["Endpoint"]: each.get("FilterPolicy") for each in subscriptions} == {
        "a@example.com": {"user": ["ann", "bob"]},
        "team@example.com": None,
    }
    # Nobody may publish by the topic's own policy, and over TLS alone.
    (policy,) = template.find_resources("AWS::SNS::TopicPolicy").values()
    assert [each["Effect"] for each in policy["Properties"]["PolicyDocument"]["Statement"]] == ["Deny"]
    wrong = ("ann", "=a@example.com", "Ann B=a@example.com", "ann=a@example", "https://hooks.example.com/x")
    inputs = (*wrong, "a@example.com,", "a@example.com,a@example.com")
    assert_sentences("job_emails", inputs, lambda value: read_settings({"job_emails": value}))
