"""The budget: when it writes, to whom, and what it counts."""

from pathlib import Path
from typing import Any

import yaml
from aws_cdk.assertions import Annotations, Match

from tests.unit.resource_schemas import resource_schema
from tests.unit.training_cluster.monitoring.monitored import EMAIL, GOLDEN, monitored, stack_of, text
from training_cluster.flags.account import CLUSTER_TAG, REGIONS_WITHOUT_BUDGETS


def _budget(**flags: str) -> dict[str, Any]:
    template = monitored(**{"budget_usd": "5000", "alarm_email": EMAIL, **flags})
    (budget,) = template.find_resources("AWS::Budgets::Budget").values()
    return dict(budget["Properties"])


def test_the_budget_counts_by_the_clusters_tag() -> None:
    """When it writes, and to whom: stacks/test_stacks_never_replaced.py."""
    budget = _budget()["Budget"]
    assert budget["CostFilters"] == {"TagKeyValue": [f"user:{CLUSTER_TAG}$training"]}
    assert budget["BudgetLimit"] == {"Amount": 5000, "Unit": "USD"}
    assert (budget["BudgetType"], budget["TimeUnit"]) == ("COST", "MONTHLY")
    for path in GOLDEN:
        assert CLUSTER_TAG in {tag["Key"] for tag in yaml.safe_load(path.read_text())["Tags"]}


def test_a_budget_that_must_be_replaced_is_renamed() -> None:
    """Its notifications cannot change, and the new one is made before the old one goes."""
    names = [
        text(_budget(**flags)["Budget"]["BudgetName"])
        for flags in ({}, {"alarm_email": "you@example.com"}, {"cluster_name": "c" * 60}, {"budget_usd": "1"})
    ]
    assert len({*names[:3]}) == 3
    assert names[3] == names[0]
    assert all("-Region-" in name for name in names), "its names are the account's, for all regions"
    assert len(names[2].replace("Region", "ap-southeast-2")) <= 100, "AWS's limit"
    cannot_change = resource_schema("AWS::Budgets::Budget")["createOnlyProperties"]
    assert "/properties/NotificationsWithSubscribers" in cannot_change


def test_regions_without_budgets_are_those_of_cloudformation() -> None:
    import cfnlint  # type: ignore[import-untyped]  # noqa: PLC0415 - most of a second

    providers = (Path(cfnlint.__file__).parent / "data" / "schemas" / "providers").glob("*.json")
    without = {each.stem for each in providers if '"AWS::Budgets::Budget"' not in each.read_text()}
    assert set(REGIONS_WITHOUT_BUDGETS) == without - {"sam"}


def test_a_budget_says_how_to_activate_its_tag() -> None:
    said = Match.string_like_regexp(
        r"`aws ce update-cost-allocation-tags-status --region us-east-1 --cost-allocation-tags-status "
        r"TagKey=training-cluster:cluster,Status=Active`.*not what clusters share.*eu-north-1"
    )
    stack = stack_of((("alarm_email", EMAIL), ("budget_usd", "5000")))
    Annotations.from_stack(stack).has_warning("*", said)
