"""The budget: when it writes, to whom, and what it counts."""

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aws_cdk.assertions import Annotations, Match, Template

from tests.unit.training_cluster.monitoring.monitored import (
    EMAIL,
    GOLDEN,
    monitored,
    stack_of,
    text,
)
from training_cluster.flags.account import CLUSTER_TAG, REGIONS_WITHOUT_BUDGETS

Synthesise = Callable[..., dict[str, Template]]


def _budget(**flags: str) -> dict[str, Any]:
    template = monitored(**{"budget_usd": "5000", "alarm_email": EMAIL, **flags})
    (budget,) = template.find_resources("AWS::Budgets::Budget").values()
    return dict(budget["Properties"])


def test_the_budget_writes_at_80_and_100_percent_and_when_100_is_forecast() -> None:
    found = {
        (n["Notification"]["NotificationType"], n["Notification"]["Threshold"])
        for n in _budget()["NotificationsWithSubscribers"]
    }
    assert found == {("ACTUAL", 80), ("ACTUAL", 100), ("FORECASTED", 100)}
    for each in _budget()["NotificationsWithSubscribers"]:
        assert each["Notification"]["ThresholdType"] == "PERCENTAGE"
        assert each["Subscribers"] == [{"Address": EMAIL, "SubscriptionType": "EMAIL"}]


def test_the_budget_counts_by_the_tag_that_the_clusters_resources_carry() -> None:
    budget = _budget(cluster_name="b")["Budget"]
    assert budget["CostFilters"] == {"TagKeyValue": [f"user:{CLUSTER_TAG}$b"]}
    assert budget["BudgetLimit"] == {"Amount": 5000, "Unit": "USD"}
    assert (budget["BudgetType"], budget["TimeUnit"]) == ("COST", "MONTHLY")
    for path in GOLDEN:
        assert CLUSTER_TAG in {tag["Key"] for tag in yaml.safe_load(path.read_text())["Tags"]}


def test_a_budget_that_must_be_replaced_gets_another_name() -> None:
    """Its notifications cannot change, and the new one is made before the old one goes."""
    names = [
        text(_budget(**flags)["Budget"]["BudgetName"])
        for flags in ({}, {"alarm_email": "you@example.com"}, {"cluster_name": "b"}, {"budget_usd": "1"})
    ]
    assert len({*names[:3]}) == 3
    assert names[3] == names[0]
    assert all("-Region-" in name for name in names), "its names are the account's, for all regions"
    longest = text(_budget(cluster_name="c" * 60)["Budget"]["BudgetName"]).replace("Region", "ap-southeast-2")
    assert len(longest) <= 100, "AWS's limit"
    cannot_change = _registry("AWS::Budgets::Budget")["createOnlyProperties"]
    assert "/properties/NotificationsWithSubscribers" in cannot_change


def _schemas() -> Path:
    """Return the schemas of CloudFormation's registry, which are part of cfn-lint."""
    found = importlib.util.find_spec("cfnlint")
    assert found and found.origin
    return Path(found.origin).parent / "data" / "schemas"


def _registry(resource_type: str) -> dict[str, Any]:
    digest = json.loads((_schemas() / "providers" / "us-east-1.json").read_text())[resource_type]
    (path,) = (_schemas() / "resources").rglob(f"{digest}.json")
    schema: dict[str, Any] = json.loads(path.read_text())
    return schema


def test_regions_without_budgets_are_those_of_the_registry() -> None:
    providers = {path.stem: path.read_text() for path in (_schemas() / "providers").glob("*.json")}
    without = {region for region, types in providers.items() if '"AWS::Budgets::Budget"' not in types}
    assert set(REGIONS_WITHOUT_BUDGETS) == without - {"sam"}


@pytest.mark.slow
def test_a_budget_says_what_to_type_for_its_tag_and_what_it_does_not_count(synthesise: Synthesise) -> None:
    stack = stack_of((("alarm_email", EMAIL), ("budget_usd", "5000")))
    said = Match.string_like_regexp(
        r"`aws ce update-cost-allocation-tags-status --region us-east-1 --cost-allocation-tags-status "
        r"TagKey=training-cluster:cluster,Status=Active`.*not what clusters share.*eu-north-1"
    )
    Annotations.from_stack(stack).has_warning("*", said)
    template = synthesise(budget_usd="5000", alarm_email=EMAIL)["TrainingClusterStack"]
    (output,) = template.find_outputs("ActivateCostTag").values()
    assert output["Value"].startswith("aws ce update-cost-allocation-tags-status ")
    assert not synthesise()["TrainingClusterStack"].find_outputs("ActivateCostTag")
