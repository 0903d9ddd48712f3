"""NetworkStack: zone, subnets, rules of nodes, endpoints, and what other stacks import."""

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Template

from stacks.network_stack import NetworkStack
from tests.unit.stacks.app import BOUNDARY, EVERYTHING, OWN_NETWORK, App
from training_cluster.acknowledgements import flat
from training_cluster.network.zone import RESOURCE_TYPE
from training_cluster.rules.context import read_settings

STACK = "NetworkStack"
IDS = ("Vpc", "PublicSubnet", "PrivateSubnet", "NodeSecurityGroup")
EXPORTS = {f"TrainingCluster-Network:{name}" for name in (*(f"{each}Id" for each in IDS), "GuardToken")}
# Of a network of ours: AccountingStack, which is refused with another, has subnets in both.
ZONES = {"TrainingCluster-Network:ZoneName", "TrainingCluster-Network:OtherZoneName"}


def test_nodes_reach_each_other_then_the_world(default: App) -> None:
    """EFA needs both directions. An egress rule replaces a group's default one, which must not be inline."""
    (group,) = default.resources("AWS::EC2::SecurityGroup", STACK).items()
    assert "SecurityGroupEgress" not in group[1]
    ours = f"<{group[0]}.GroupId>"
    ingress = default.resources("AWS::EC2::SecurityGroupIngress", STACK).values()
    assert [(rule["IpProtocol"], flat(rule["SourceSecurityGroupId"])) for rule in ingress] == [("-1", ours)]
    egress = default.resources("AWS::EC2::SecurityGroupEgress", STACK)
    (nodes,) = (id_ for id_, rule in egress.items() if "DestinationSecurityGroupId" in rule)
    (world,) = (id_ for id_, rule in egress.items() if rule.get("CidrIp") == "0.0.0.0/0")
    assert (egress[nodes]["IpProtocol"], flat(egress[nodes]["DestinationSecurityGroupId"])) == ("-1", ours)
    assert nodes in default.templates[STACK]["Resources"][world]["DependsOn"]


def test_s3_is_reached_by_a_gateway_endpoint(default: App) -> None:
    endpoints = default.resources("AWS::EC2::VPCEndpoint").values()
    assert {each["VpcEndpointType"] for each in endpoints} == {"Gateway"}
    assert any("s3" in str(each["ServiceName"]) and each["RouteTableIds"] for each in endpoints)
    assert len(default.resources("AWS::EC2::NatGateway")) == 1


def test_the_zone_offers_every_instance_type_in_use(default: App, everything: App) -> None:
    zone = default.only(RESOURCE_TYPE)
    assert (zone["Zone"], zone["Reservations"], zone["ServiceTimeout"]) == ("auto", [], "600")
    assert zone["InstanceTypes"] == ["c5.4xlarge", "p4d.24xlarge"]
    more = everything.only(RESOURCE_TYPE)["InstanceTypes"]
    assert more == ["c5.4xlarge", "m6i.16xlarge", "m6i.8xlarge", "m6i.xlarge", "p4d.24xlarge"]


def test_the_zone_resource_may_look_and_touch_nothing(default: App) -> None:
    roles = default.resources("AWS::IAM::Role", STACK)
    (role,) = (role for id_, role in roles.items() if id_.startswith("ZoneRole"))
    assert "ManagedPolicyArns" not in role
    (policy,) = role["Policies"]
    for statement in policy["PolicyDocument"]["Statement"]:
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else actions:
            name = action.split(":")[1]
            looks = name.startswith(("Describe", "List")) or name == "GetGroupConfiguration"
            logs = name in {"CreateLogStream", "PutLogEvents"} and statement["Resource"] != "*"
            assert looks or logs, action


def test_all_flows_are_logged_and_the_log_stays(default: App) -> None:
    resources = default.templates[STACK]["Resources"]
    (flow_log,) = (each for each in resources.values() if each["Type"] == "AWS::EC2::FlowLog")
    assert flow_log["Properties"]["TrafficType"] == "ALL"
    group = resources[flow_log["Properties"]["LogGroupName"]["Ref"]]
    assert group["Properties"]["RetentionInDays"] == 90
    assert group["DeletionPolicy"] == group["UpdateReplacePolicy"] == "Retain"
    # Flows are lost until their role may write.
    role = flow_log["Properties"]["DeliverLogsPermissionArn"]["Fn::GetAtt"][0]
    policies = default.resources("AWS::IAM::Policy", STACK).items()
    (policy,) = (id_ for id_, each in policies if each["Roles"] == [{"Ref": role}])
    assert policy in flow_log["DependsOn"]


def _interface_endpoints(app: App) -> list[dict[str, Any]]:
    endpoints = app.resources("AWS::EC2::VPCEndpoint").values()
    return [each for each in endpoints if each["VpcEndpointType"] == "Interface"]


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


def test_endpoints_are_those_of_the_flags() -> None:
    """Mail and containers need no flag of the network; a region may lack the service of metrics=amp."""
    assert read_settings({}).interface_endpoints == ()
    services = read_settings({"endpoints": "private"}).interface_endpoints
    assert {"sns", "ecr.api", "ecr.dkr"} <= set(services)
    workspace = "arn:aws:aps:us-east-1:123456789012:workspace/ws-0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"
    amp = {"metrics": "amp", "metrics_workspace": workspace, "endpoints": "private"}
    assert set(read_settings(amp).interface_endpoints) == {*services, "aps-workspaces"}


@pytest.mark.parametrize("region", ["us-gov-west-1", "cn-north-1"])
def test_private_endpoints_have_the_regions_names(everything: App, region: str) -> None:
    """In China some services begin with cn.; the CDK knows which, but only for a region that it knows."""
    here = cdk.Stack(env=cdk.Environment(region=region))
    services = read_settings(EVERYTHING).interface_endpoints
    expected = {str(here.resolve(ec2.InterfaceVpcEndpointAwsService(each, None).name)) for each in services}
    conditions = {
        name: each == {"Fn::Equals": [{"Ref": "AWS::Partition"}, "aws-cn"]} and region.startswith("cn-")
        for name, each in everything.templates[STACK].get("Conditions", {}).items()
    }
    found = {
        _resolved(each["ServiceName"], conditions=conditions, region=region)
        for each in _interface_endpoints(everything)
    }
    assert found == expected


def test_private_endpoints_answer_the_whole_network_alone(everything: App) -> None:
    """Their private names hold in all of the VPC: for instances that build images, too."""
    groups = everything.resources("AWS::EC2::SecurityGroup")
    for each in _interface_endpoints(everything):
        assert each["PrivateDnsEnabled"] is True
        ((group, _),) = (each["Fn::GetAtt"] for each in each["SecurityGroupIds"])
        (rule,) = groups[group]["SecurityGroupIngress"]
        assert (rule["FromPort"], rule["ToPort"], rule["IpProtocol"]) == (443, 443, "tcp")
        assert rule["CidrIp"] == everything.only("AWS::EC2::VPC")["CidrBlock"]


def test_an_own_network_and_group_get_nothing() -> None:
    settings = read_settings({**OWN_NETWORK, "security_group_id": "sg-0123456789abcdef0"})
    template = Template.from_stack(NetworkStack(cdk.App(), STACK, settings=settings)).to_json()
    assert not [each for each in template["Resources"].values() if each["Type"].startswith("AWS::EC2::")]
    assert {each["Export"]["Name"] for each in template["Outputs"].values()} == EXPORTS


def test_the_guard_keeps_what_stacks_stand_in(default: App, brought: App) -> None:
    ours, theirs = (app.only("Custom::Guard", STACK)["Values"] for app in (default, brought))
    for flag, id_ in OWN_NETWORK.items():
        assert (ours[flag]["value"], theirs[flag]["value"], ours[flag]["may"]) == ("", id_, "never")
    assert theirs["permissions_boundary"]["value"] == BOUNDARY, "before it goes from the shared stacks' roles"


def test_exports_are_the_same_for_any_network(default: App, everything: App, brought: App) -> None:
    """So CloudFormation, which refuses to change an export in use, refuses another network in any case."""
    for app, exports in ((default, EXPORTS | ZONES), (everything, EXPORTS | ZONES), (brought, EXPORTS)):
        outputs = app.templates[STACK]["Outputs"].values()
        assert {each["Export"]["Name"] for each in outputs if "Export" in each} == exports
        text = str({**app.templates["TrainingClusterStack"], "Metadata": {}})  # the flags, for trainctl plan
        assert "TrainingCluster-Network:PrivateSubnetId" in text
        assert not [id_ for id_ in OWN_NETWORK.values() if id_ in text]
