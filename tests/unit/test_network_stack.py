"""NetworkStack: what its template must hold, whatever the family."""

from __future__ import annotations

from collections.abc import Callable

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
    assert synthesise(nodes="7", min_nodes="1", os="ubuntu2404")[stack].to_json() == expected


def test_a_zone_can_be_named_or_given_by_its_id(synthesise: Synthesise) -> None:
    named = synthesise(zone="us-east-1c")["NetworkStack"].find_resources("AWS::EC2::Subnet")
    assert {s["Properties"]["AvailabilityZone"] for s in named.values()} == {"us-east-1c"}
    by_id = synthesise(zone="use1-az4")["NetworkStack"].find_resources("AWS::EC2::Subnet")
    assert {s["Properties"]["AvailabilityZoneId"] for s in by_id.values()} == {"use1-az4"}
    assert not any("AvailabilityZone" in s["Properties"] for s in by_id.values())
