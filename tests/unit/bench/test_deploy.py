"""The critical path of templates: its edges, its length and its reasons."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.deploy import growth
from bench.subjects.creation_times import read_times
from bench.subjects.critical_path import GraphError, build_graph, critical_path, read_assembly

SECONDS = {"Slow": 100.0, "Quick": 10.0}


def stack(resources: dict[str, Any], outputs: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"Resources": resources, "Outputs": outputs or {}}


def names(templates: dict[str, Any], before: dict[str, list[str]], **options: Any) -> list[str]:
    path = critical_path(build_graph(templates, before), SECONDS, otherwise_s=1, **options)
    return [step.resource.name for step in path]


NETWORK = stack(
    {"Vpc": {"Type": "Quick"}, "Nat": {"Type": "Slow", "Properties": {"In": {"Ref": "Vpc"}}}},
    {"Id": {"Value": {"Ref": "Vpc"}, "Export": {"Name": "network:id"}}},
)
STORAGE = stack({"Disk": {"Type": "Slow", "Properties": {"In": {"Fn::ImportValue": "network:id"}}}})
TWO = {"Network": NETWORK, "Storage": STORAGE}
ORDER = {"Network": [], "Storage": ["Network"]}


def test_a_stack_waits_for_all_of_the_stack_before_it() -> None:
    assert names(TWO, ORDER) == ["Network/Vpc", "Network/Nat", "Storage/Disk"]


def test_by_references_alone_it_waits_for_the_value_that_it_imports() -> None:
    path = critical_path(build_graph(TWO, ORDER), SECONDS, otherwise_s=1, kinds=("reference",))
    assert path[0].resource.name == "Network/Vpc"
    assert path[-1].ends_s == 110
    assert path[-1].after == "reference"


@pytest.mark.parametrize(
    "value",
    [
        {"Ref": "A"},
        {"Fn::GetAtt": ["A", "Arn"]},
        {"Fn::GetAtt": "A.Arn"},
        {"Fn::Sub": "x-${A}"},
        {"Fn::Sub": ["x-${A.Arn}-${other}", {"other": "y"}]},
        {"Fn::Join": ["", ["x", {"Ref": "A"}]]},
    ],
)
def test_every_way_to_use_a_value_is_a_reference(value: Any) -> None:
    template = stack({"A": {"Type": "Quick"}, "B": {"Type": "Quick", "Properties": {"Uses": value}}})
    assert build_graph({"S": template}, {"S": []})["S/B"].waits_for == {"S/A": "reference"}


def test_a_depends_on_counts_as_explicit_only_without_a_reference() -> None:
    template = stack(
        {
            "A": {"Type": "Quick"},
            "B": {"Type": "Quick"},
            "C": {"Type": "Quick", "DependsOn": ["A", "B"], "Properties": {"Uses": {"Ref": "A"}}},
        }
    )
    found = build_graph({"S": template}, {"S": []})["S/C"].waits_for
    assert found == {"S/A": "reference", "S/B": "explicit"}


def test_of_two_that_end_together_the_reference_decides() -> None:
    template = stack(
        {
            "A": {"Type": "Slow"},
            "B": {"Type": "Slow"},
            "C": {"Type": "Quick", "DependsOn": ["A"], "Properties": {"Uses": {"Ref": "B"}}},
        }
    )
    assert names({"S": template}, {"S": []}) == ["S/B", "S/C"]


def test_a_circle_and_an_import_of_nothing_are_told() -> None:
    circle = stack({"A": {"Type": "Q", "DependsOn": "B"}, "B": {"Type": "Q", "DependsOn": "A"}})
    with pytest.raises(GraphError, match="S/A, S/B"):
        names({"S": circle}, {"S": []})
    with pytest.raises(GraphError, match="network:id"):
        names({"Storage": STORAGE}, {"Storage": []})


def test_an_assembly_is_read_with_the_order_of_its_stacks(tmp_path: Path) -> None:
    artifacts: dict[str, Any] = {"Network.assets": {"type": "cdk:asset-manifest"}}
    for name, template in TWO.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(template))
        artifacts[name] = {
            "type": "aws:cloudformation:stack",
            "properties": {"templateFile": f"{name}.json"},
            "dependencies": [*ORDER[name], "Network.assets"],
        }
    (tmp_path / "manifest.json").write_text(json.dumps({"artifacts": artifacts}))
    assert read_assembly(tmp_path) == build_graph(TWO, ORDER)


def test_every_creation_time_names_its_source() -> None:
    times = read_times()
    assert times.seconds_of("Custom::TrainingCluster") == 600
    assert times.seconds_of("AWS::Nothing::Known") == times.otherwise_s


@pytest.mark.parametrize(
    ("calls", "found"),
    [({1: 10, 2: 20, 4: 40, 8: 80}, 2), ({1: 10, 2: 11, 4: 13, 8: 25}, 6), ({1: 9, 2: 9, 4: 9, 8: 9}, 0)],
)
def test_growth_is_two_where_calls_are_linear_in_queues(calls: dict[int, int], found: float) -> None:
    assert growth(calls) == found
