"""Needs at creation in templates other than ours."""

from typing import Any

import pytest

from rehearsal.creation_order.needs import missing


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
