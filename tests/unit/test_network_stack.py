"""NetworkStack: what its template must hold, whatever the family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aws_cdk.assertions import Match, Template

from training_cluster.families import family_names

Synthesise = Callable[..., dict[str, Template]]


@pytest.fixture
def network(synthesise: Synthesise) -> Template:
    return synthesise()["NetworkStack"]


def test_one_zone_with_a_public_and_a_private_subnet(network: Template) -> None:
    network.resource_count_is("AWS::EC2::Subnet", 2)
    network.has_resource_properties("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16"})
    network.has_resource_properties(
        "AWS::EC2::Subnet", {"CidrBlock": "10.0.0.0/20", "MapPublicIpOnLaunch": True}
    )
    network.has_resource_properties(
        "AWS::EC2::Subnet", {"CidrBlock": "10.0.128.0/17", "MapPublicIpOnLaunch": False}
    )
    zones = {
        str(s["Properties"]["AvailabilityZone"]) for s in network.find_resources("AWS::EC2::Subnet").values()
    }
    assert len(zones) == 1


def test_one_nat_gateway_and_a_gateway_endpoint_for_s3(network: Template) -> None:
    network.resource_count_is("AWS::EC2::NatGateway", 1)
    network.has_resource_properties(
        "AWS::EC2::VPCEndpoint",
        {"VpcEndpointType": "Gateway", "RouteTableIds": Match.any_value()},
    )


def test_nodes_reach_each_other_in_both_directions_for_efa(network: Template) -> None:
    everything = {"IpProtocol": "-1", "GroupId": Match.any_value()}
    network.has_resource_properties(
        "AWS::EC2::SecurityGroupIngress", everything | {"SourceSecurityGroupId": Match.any_value()}
    )
    network.has_resource_properties(
        "AWS::EC2::SecurityGroupEgress", everything | {"DestinationSecurityGroupId": Match.any_value()}
    )


def test_nodes_reach_the_world_after_each_other(network: Template) -> None:
    """Creating an egress rule takes away a group's default one, so the group must have none inline."""
    group = next(iter(network.find_resources("AWS::EC2::SecurityGroup").values()))
    assert "SecurityGroupEgress" not in group["Properties"]
    rules = network.find_resources("AWS::EC2::SecurityGroupEgress")
    world = next(rule for rule in rules.values() if rule["Properties"].get("CidrIp") == "0.0.0.0/0")
    (nodes,) = [name for name, r in rules.items() if "DestinationSecurityGroupId" in r["Properties"]]
    assert world["DependsOn"] == [nodes]


def test_nothing_lets_the_world_in(synthesise: Synthesise) -> None:
    for template in synthesise().values():
        for group in template.find_resources("AWS::EC2::SecurityGroup").values():
            assert "SecurityGroupIngress" not in group["Properties"] or all(
                "CidrIp" not in rule for rule in group["Properties"]["SecurityGroupIngress"]
            )
        for rule in template.find_resources("AWS::EC2::SecurityGroupIngress").values():
            assert "CidrIp" not in rule["Properties"]
            assert "CidrIpv6" not in rule["Properties"]


@pytest.mark.parametrize("stack", ["NetworkStack", "StorageStack"])
def test_no_flag_of_the_cluster_changes_network_or_storage(synthesise: Synthesise, stack: str) -> None:
    expected = synthesise()[stack].to_json()
    for family in family_names():
        assert synthesise(family=family)[stack].to_json() == expected
    assert (
        synthesise(nodes="7", min_nodes="1", os="ubuntu2404", cluster_name="b")[stack].to_json() == expected
    )


def test_a_zone_can_be_named_or_given_by_its_id(synthesise: Synthesise) -> None:
    named = synthesise(zone="us-east-1c")["NetworkStack"].find_resources("AWS::EC2::Subnet")
    assert {s["Properties"]["AvailabilityZone"] for s in named.values()} == {"us-east-1c"}
    by_id = synthesise(zone="use1-az4")["NetworkStack"].find_resources("AWS::EC2::Subnet")
    assert {s["Properties"]["AvailabilityZoneId"] for s in by_id.values()} == {"use1-az4"}
    assert not any("AvailabilityZone" in s["Properties"] for s in by_id.values())


def test_ssh_is_one_rule_and_only_when_it_is_asked_for(synthesise: Synthesise) -> None:
    rules = synthesise(ssh_from="203.0.113.0/24")["NetworkStack"].find_resources(
        "AWS::EC2::SecurityGroupIngress", {"Properties": {"CidrIp": Match.any_value()}}
    )
    (rule,) = (each["Properties"] for each in rules.values())
    assert (rule["FromPort"], rule["ToPort"], rule["CidrIp"]) == (22, 22, "203.0.113.0/24")


def test_private_endpoints_answer_the_nodes_only(synthesise: Synthesise) -> None:
    network = synthesise(endpoints="private")["NetworkStack"]
    endpoints = network.find_resources(
        "AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Interface"}}
    )
    services = {str(each["Properties"]["ServiceName"]) for each in endpoints.values()}
    for service in ("ec2", "cloudformation", "logs", "ssmmessages"):
        assert any(name.endswith(f".{service}']]}}") for name in services), services
    for each in endpoints.values():
        assert each["Properties"]["PrivateDnsEnabled"] is True
        assert len(each["Properties"]["SecurityGroupIds"]) == 1


def test_an_own_network_gets_a_security_group_and_nothing_else(synthesise: Synthesise) -> None:
    flags = {
        "vpc_id": "vpc-0123456789abcdef0",
        "public_subnet_id": "subnet-0123456789abcdef0",
        "private_subnet_id": "subnet-0123456789abcdef1",
    }
    assert _types(synthesise(**flags)["NetworkStack"].to_json()) == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
    }
    own_group = synthesise(**flags, security_group_id="sg-0123456789abcdef0")["NetworkStack"].to_json()
    assert _types(own_group) == {"AWS::CloudFormation::WaitConditionHandle"}


def _types(template: Mapping[str, Any]) -> set[str]:
    return {resource["Type"] for resource in template["Resources"].values()}
