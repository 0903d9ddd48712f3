"""NetworkStack: requirements of its template, for every family."""

import json
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Match, Template

from stacks.composition import add_stacks
from stacks.network_stack import NetworkStack
from stacks.storage_stack import StorageStack
from training_cluster.catalog.families import family_names
from training_cluster.flags.cluster import ClusterFlags
from training_cluster.flags.compute import ComputeFlags
from training_cluster.flags.network import INTERFACE_ENDPOINTS
from training_cluster.network.zone import RESOURCE_TYPE
from training_cluster.paths import ROOT
from training_cluster.rules.context import read_settings

Synthesise = Callable[..., dict[str, Template]]


OWN_NETWORK = {
    "vpc_id": "vpc-0123456789abcdef0",
    "public_subnet_id": "subnet-0123456789abcdef0",
    "private_subnet_id": "subnet-0123456789abcdef1",
}

# Every flag of a cluster, with another value than p5's own.
ANOTHER_CLUSTER = [
    ("instance_type", "p5.4xlarge"),
    ("nodes", "64"),
    ("min_nodes", "2"),
    ("capacity", "spot"),
    ("capacity", "capacity-block:cr-0123456789abcdef0"),
    ("placement_group", "mine"),
    ("image", "ami-0123456789abcdef0"),
    ("workloads", "gpt2"),
    ("os", "alinux2023"),
    ("head_node_type", "m6i.8xlarge"),
    ("head_root_gib", "500"),
    ("cpu_queue", "on"),
    ("login_nodes", "2"),
    ("accounting", "new"),
    ("overrides", "rehearsal/validation/overrides/tuning.yaml"),
    ("queues", "rehearsal/validation/queues/several.yaml"),
    ("queue_name", "train"),
    ("users", "tests/unit/stacks/people/users.yaml"),
    ("directory", "tests/unit/stacks/people/directory.yaml"),
    ("public_access", "off"),
    ("cluster_name", "b"),
    ("on_busy", "drain"),
    ("layer", "build"),
]


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
    (zone,) = network.find_resources(RESOURCE_TYPE)
    for subnet in network.find_resources("AWS::EC2::Subnet").values():
        assert subnet["Properties"]["AvailabilityZone"] == {"Fn::GetAtt": [zone, "Name"]}


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
    assert nodes in world["DependsOn"]


def test_nothing_lets_the_world_in(synthesise: Synthesise) -> None:
    for template in synthesise().values():
        for group in template.find_resources("AWS::EC2::SecurityGroup").values():
            assert "SecurityGroupIngress" not in group["Properties"] or all(
                "CidrIp" not in rule for rule in group["Properties"]["SecurityGroupIngress"]
            )
        for rule in template.find_resources("AWS::EC2::SecurityGroupIngress").values():
            assert "CidrIp" not in rule["Properties"]
            assert "CidrIpv6" not in rule["Properties"]


@cache
def _foundations(**flags: str) -> dict[str, dict[str, Any]]:
    """Return the templates of network and storage without the zone's inputs, and without the slow stack."""
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"])
    settings = read_settings(flags)
    network = NetworkStack(app, "NetworkStack", settings=settings)
    storage = StorageStack(app, "StorageStack", settings=settings, network=network.network)
    templates = {stack.node.id: dict(Template.from_stack(stack).to_json()) for stack in (network, storage)}
    for resource in templates["NetworkStack"]["Resources"].values():
        if resource["Type"] == RESOURCE_TYPE:
            for name in ("InstanceTypes", "ReservationId"):
                del resource["Properties"][name]
    return templates


@pytest.mark.slow
@pytest.mark.parametrize("family", family_names())
def test_no_family_changes_more_of_network_and_storage_than_the_zones_inputs(family: str) -> None:
    assert _foundations(family=family) == _foundations(family="p5")


@pytest.mark.slow
@pytest.mark.parametrize(("flag", "value"), ANOTHER_CLUSTER)
def test_no_flag_of_a_cluster_changes_more_of_them_than_the_zones_inputs(flag: str, value: str) -> None:
    assert _foundations(**{"family": "p5", flag: value}) == _foundations(family="p5")


def test_every_flag_of_a_cluster_is_tried_against_network_and_storage() -> None:
    # The others need them; image_rebuild needs image=build, which adds an instance type to the zone's.
    not_tried = {"family", "pcluster_version", "accounting_user", "accounting_secret", "image_rebuild"}
    flags = {*ComputeFlags.model_fields, *ClusterFlags.model_fields}
    assert {flag for flag, _ in ANOTHER_CLUSTER} == flags - not_tried


def _zone_inputs(synthesise: Synthesise, **flags: str) -> dict[str, Any]:
    found = synthesise(**flags)["NetworkStack"].find_resources(RESOURCE_TYPE)
    (resource,) = found.values()
    return {name: resource["Properties"][name] for name in ("Zone", "InstanceTypes", "ReservationId")}


def test_the_zone_has_to_offer_every_instance_type_that_is_used(synthesise: Synthesise) -> None:
    assert _zone_inputs(synthesise) == {
        "Zone": "auto",
        "InstanceTypes": ["c5.4xlarge", "p4d.24xlarge"],
        "ReservationId": "",
    }
    more = _zone_inputs(synthesise, cpu_queue="on", login_nodes="1", head_node_type="m6i.4xlarge")
    assert more["InstanceTypes"] == ["m6i.16xlarge", "m6i.4xlarge", "m6i.xlarge", "p4d.24xlarge"]
    reserved = _zone_inputs(synthesise, capacity="reservation:cr-0123456789abcdef0", zone="use1-az4")
    assert (reserved["Zone"], reserved["ReservationId"]) == ("use1-az4", "cr-0123456789abcdef0")


def test_another_zone_changes_the_resource_that_refuses_it_and_nothing_else(synthesise: Synthesise) -> None:
    named, automatic = (synthesise(**f)["NetworkStack"].to_json() for f in ({"zone": "us-east-1c"}, {}))
    (zone,) = (name for name, r in named["Resources"].items() if r["Type"] == RESOURCE_TYPE)
    assert named["Resources"][zone]["Properties"].pop("Zone") == "us-east-1c"
    assert automatic["Resources"][zone]["Properties"].pop("Zone") == "auto"
    assert named == automatic


def test_the_zone_resource_may_look_and_touch_nothing(synthesise: Synthesise) -> None:
    network = synthesise()["NetworkStack"]
    roles = network.find_resources("AWS::IAM::Role", {"Properties": {"Policies": Match.any_value()}})
    role = next(r for name, r in roles.items() if name.startswith("ZoneRole"))
    assert "ManagedPolicyArns" not in role["Properties"]
    (policy,) = role["Properties"]["Policies"]
    for statement in policy["PolicyDocument"]["Statement"]:
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            assert action.split(":")[1].startswith(("Describe", "CreateLogStream", "PutLogEvents")), action
            assert "*" not in action
            assert statement["Resource"] != "*" or action.startswith("ec2:Describe"), action


def test_flows_are_logged_all_of_them_and_the_log_outlives_the_network(network: Template) -> None:
    (flow_log,) = network.find_resources("AWS::EC2::FlowLog").values()
    (vpc,) = network.find_resources("AWS::EC2::VPC")
    assert flow_log["Properties"]["ResourceId"] == {"Ref": vpc}
    assert flow_log["Properties"]["TrafficType"] == "ALL"
    group = network.to_json()["Resources"][flow_log["Properties"]["LogGroupName"]["Ref"]]
    assert group["Properties"]["RetentionInDays"] == 90
    assert group["DeletionPolicy"] == group["UpdateReplacePolicy"] == "Retain"


def test_flow_logs_begin_when_their_role_may_write(network: Template) -> None:
    (flow_log,) = network.find_resources("AWS::EC2::FlowLog").values()
    policies = network.find_resources("AWS::IAM::Policy")
    role = flow_log["Properties"]["DeliverLogsPermissionArn"]["Fn::GetAtt"][0]
    (policy,) = (name for name, each in policies.items() if each["Properties"]["Roles"] == [{"Ref": role}])
    assert policy in flow_log["DependsOn"]


def test_ssh_is_one_rule_and_only_when_it_is_asked_for(synthesise: Synthesise) -> None:
    rules = synthesise(ssh_from="203.0.113.0/24")["NetworkStack"].find_resources(
        "AWS::EC2::SecurityGroupIngress", {"Properties": {"CidrIp": Match.any_value()}}
    )
    (rule,) = (each["Properties"] for each in rules.values())
    assert (rule["FromPort"], rule["ToPort"], rule["CidrIp"]) == (22, 22, "203.0.113.0/24")


def _interface_endpoints(network: Template) -> list[dict[str, Any]]:
    endpoints = network.find_resources(
        "AWS::EC2::VPCEndpoint", {"Properties": {"VpcEndpointType": "Interface"}}
    )
    return [each["Properties"] for each in endpoints.values()]


def _resolved(value: Any, *, conditions: dict[str, bool], region: str) -> str:
    """Resolve the few functions that the name of a service is made of, as CloudFormation does."""
    match value:
        case {"Ref": "AWS::Region"}:
            return region
        case {"Fn::If": [condition, yes, no]}:
            return _resolved(yes if conditions[condition] else no, conditions=conditions, region=region)
        case {"Fn::Join": ["", parts]}:
            return "".join(_resolved(each, conditions=conditions, region=region) for each in parts)
        case _:
            return str(value)


@pytest.mark.parametrize("region", ["us-east-1", "us-gov-west-1", "cn-north-1", "cn-northwest-1"])
def test_private_endpoints_are_named_as_the_cdk_names_them_in_the_region(
    synthesise: Synthesise, region: str
) -> None:
    """In China some services begin with cn.; the CDK knows which, but only for a region that it knows."""
    network = synthesise(endpoints="private")["NetworkStack"]
    here = cdk.Stack(env=cdk.Environment(region=region))
    expected = {
        str(here.resolve(ec2.InterfaceVpcEndpointAwsService(each, None).name)) for each in INTERFACE_ENDPOINTS
    }
    conditions = {
        name: each == {"Fn::Equals": [{"Ref": "AWS::Partition"}, "aws-cn"]} and region.startswith("cn-")
        for name, each in network.to_json().get("Conditions", {}).items()
    }
    found = {
        _resolved(each["ServiceName"], conditions=conditions, region=region)
        for each in _interface_endpoints(network)
    }
    assert found == expected


def test_private_endpoints_answer_whoever_is_in_the_network_and_nobody_else(synthesise: Synthesise) -> None:
    """Their private names hold in all of the VPC: for instances that build images, too."""
    network = synthesise(endpoints="private")["NetworkStack"]
    (vpc,) = network.find_resources("AWS::EC2::VPC").values()
    groups = network.find_resources("AWS::EC2::SecurityGroup")
    for each in _interface_endpoints(network):
        assert each["PrivateDnsEnabled"] is True
        ((group, _),) = (each["Fn::GetAtt"] for each in each["SecurityGroupIds"])
        (rule,) = groups[group]["Properties"]["SecurityGroupIngress"]
        assert (rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == (443, 443, "tcp")
        assert rule["CidrIp"] == vpc["Properties"]["CidrBlock"]


def _network_types(template: Template) -> set[str]:
    return {each for each in _types(template.to_json()) if each.startswith("AWS::EC2::")}


def test_an_own_network_gets_a_security_group_and_nothing_else(synthesise: Synthesise) -> None:
    assert _network_types(synthesise(**OWN_NETWORK)["NetworkStack"]) == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupIngress",
        "AWS::EC2::SecurityGroupEgress",
    }
    own_group = synthesise(**OWN_NETWORK, security_group_id="sg-0123456789abcdef0")["NetworkStack"]
    assert _network_types(own_group) == set()


def test_the_guard_is_asked_before_anything_of_the_network_changes(synthesise: Synthesise) -> None:
    template = synthesise(endpoints="private")["NetworkStack"].to_json()["Resources"]
    (guard,) = [name for name, each in template.items() if each["Type"] == "Custom::Guard"]
    for name, each in template.items():
        if each["Type"].startswith("AWS::EC2::") or each["Type"] == RESOURCE_TYPE:
            assert guard in each["DependsOn"], name


@pytest.mark.parametrize("flag", ["vpc_id", "public_subnet_id", "private_subnet_id", "security_group_id"])
def test_the_guard_keeps_what_stacks_stand_in(synthesise: Synthesise, flag: str) -> None:
    def kept(**flags: str) -> dict[str, str]:
        (guard,) = synthesise(**flags)["NetworkStack"].find_resources("Custom::Guard").values()
        value: dict[str, str] = guard["Properties"]["Values"][flag]
        return value

    given = OWN_NETWORK | {"security_group_id": "sg-0123456789abcdef0"}
    assert kept()["value"] == ""
    assert kept(**given)["value"] == given[flag]
    assert kept()["may"] == "never"


EXPORTS = {
    f"TrainingCluster-Network:{name}Id"
    for name in ("Vpc", "PublicSubnet", "PrivateSubnet", "NodeSecurityGroup")
}


# Of a network of ours: AccountingStack, which is refused with another, has subnets in both.
ZONES = {"TrainingCluster-Network:ZoneName", "TrainingCluster-Network:OtherZoneName"}


@pytest.mark.parametrize(
    ("flags", "exports"),
    [
        ({}, EXPORTS | ZONES),
        ({"endpoints": "private"}, EXPORTS | ZONES),
        ({"accounting": "new"}, EXPORTS | ZONES),
        (OWN_NETWORK, EXPORTS),
        (OWN_NETWORK | {"security_group_id": "sg-0123456789abcdef0"}, EXPORTS),
    ],
    ids=["ours", "private", "accounting", "brought", "all brought"],
)
def test_the_same_exports_whatever_the_flags(
    synthesise: Synthesise, flags: dict[str, str], exports: set[str]
) -> None:
    outputs = synthesise(**flags)["NetworkStack"].to_json()["Outputs"].values()
    assert {each["Export"]["Name"] for each in outputs if "Export" in each} == exports


def test_what_was_brought_is_imported_like_what_was_made(synthesise: Synthesise) -> None:
    """So CloudFormation, which refuses to change an export in use, refuses another network in any case."""
    ours, brought = synthesise(), synthesise(**OWN_NETWORK)
    for stack in ("StorageStack", "TrainingClusterStack"):
        text, own = dict(brought[stack].to_json()), dict(ours[stack].to_json())
        for each in (text, own):
            each.pop("Metadata", None)  # the flags, for trainctl plan
        assert text == own
        assert OWN_NETWORK["private_subnet_id"] not in str(text)
        assert "TrainingCluster-Network:PrivateSubnetId" in str(text)


def test_whatever_imports_the_network_is_deployed_after_it_and_destroyed_before() -> None:
    app = cdk.App()
    network, *others = add_stacks(app, read_settings(OWN_NETWORK))
    for stack in others:
        assert network in stack.dependencies


def _types(template: Mapping[str, Any]) -> set[str]:
    return {resource["Type"] for resource in template["Resources"].values()}
