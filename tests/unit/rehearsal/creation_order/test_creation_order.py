"""Needs at creation and unlucky orders, of other templates; a slow test of local_aws deploys one."""

from typing import Any

import pytest

from rehearsal.creation_order.needs import missing
from rehearsal.creation_order.template import Dependencies, unlucky_order


def _found(resources: dict[str, dict[str, Any]]) -> list[tuple[str, str, list[str]]]:
    return [(each.need.id, each.resource, sorted(each.needed)) for each in missing(resources)]


def test_an_instance_beside_its_way_out_is_named() -> None:
    route = {"Type": "AWS::EC2::Route", "Properties": {"NatGatewayId": "nat-1"}}
    instance: dict[str, Any] = {"Type": "AWS::EC2::Instance", "Properties": {}}
    assert _found({"Route": route, "Node": instance}) == [("way-out", "Node", ["Route"])]
    assert _found({"Route": route, "Node": {**instance, "DependsOn": "Route"}}) == []


def test_only_an_instance_s_address_needs_the_gateway() -> None:
    attachment = {"Type": "AWS::EC2::VPCGatewayAttachment", "Properties": {"InternetGatewayId": "igw-1"}}
    alone = {"Type": "AWS::EC2::EIP", "Properties": {"Domain": "vpc"}}
    used = {"Type": "AWS::EC2::EIP", "Properties": {"InstanceId": "i-1"}}
    assert _found({"Attachment": attachment, "Alone": alone, "Used": used}) == [
        ("gateway-attached", "Used", ["Attachment"])
    ]


def test_associations_wait_only_within_one_file_system() -> None:
    def association(system: str) -> dict[str, Any]:
        return {
            "Type": "AWS::FSx::DataRepositoryAssociation",
            "Properties": {"FileSystemId": {"Ref": system}},
        }

    assert _found({"A": association("One"), "B": association("Two")}) == []
    assert _found({"A": association("One"), "B": association("One")}) == [("association-series", "B", ["A"])]


@pytest.mark.parametrize(
    "function",
    [
        {"FunctionName": "copy"},
        {"LoggingConfig": {"LogGroup": "/aws/lambda/copy"}},
        {"LoggingConfig": {"LogGroup": {"Ref": "Log"}}},
    ],
)
def test_a_log_group_is_also_found_by_name(function: dict[str, Any]) -> None:
    template = {
        "Copy": {"Type": "AWS::Lambda::Function", "Properties": function},
        "Log": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/aws/lambda/copy"}},
        "Other": {"Type": "AWS::Logs::LogGroup", "Properties": {"LogGroupName": "/aws/lambda/other"}},
        "Files": {"Type": "Custom::Copy", "Properties": {"ServiceToken": {"Fn::GetAtt": ["Copy", "Arn"]}}},
    }
    before_the_function = "LoggingConfig" in function and "Ref" in str(function)
    assert [(each.resource, set(each.needed)) for each in missing(template)] == (
        [] if before_the_function else [("Files", {"Log"})]
    )
    template["Files"]["DependsOn"] = "Log"
    assert missing(template) == []


WAITS = {
    "file-system": {"group"},
    "group": {"vpc"},
    "rule": {"group"},
    "vpc": set[str](),
    "link": {"file-system"},
}


def test_what_nothing_waits_for_comes_last() -> None:
    orders = [unlucky_order(WAITS, seed) for seed in range(20)]
    assert {(*order[:3],) for order in orders} == {("vpc", "group", "file-system")}
    assert {order[-1] for order in orders} == {"rule", "link"}
    assert orders == [unlucky_order(dict(reversed(WAITS.items())), seed) for seed in range(20)]

    with pytest.raises(ValueError, match="Circular dependency between resources: a, b"):
        unlucky_order({"a": {"b"}, "b": {"a"}}, 1)


def test_dependencies_are_found_in_all_forms() -> None:
    value = {
        "a": [{"Ref": "One"}, {"Fn::GetAtt": ["Two", "Arn"]}, {"Fn::GetAtt": "Three.Arn"}],
        "b": {"Fn::Sub": "x-${Four}-${!No}-${AWS::Region}"},
        "c": {"Fn::Sub": ["${Own}${Five.Arn}", {"Own": {"Ref": "Six"}}]},
    }
    names = ("One", "Two", "Three", "Four", "Five", "Six", "Own", "No")
    resources = {name: {"Type": "T"} for name in names} | {"It": {"Type": "T", "Properties": value}}
    assert Dependencies(resources).direct["It"] == {"One", "Two", "Three", "Four", "Five", "Six", "Own"}
