"""The network: one zone, where EFA works and a NAT gateway is paid once."""

from __future__ import annotations

from aws_cdk import Annotations, CfnTag
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from training_cluster.network_flags import NetworkFlags

CIDR = "10.0.0.0/16"
PUBLIC_PREFIX = 20
"""10.0.0.0/20: head and login nodes, the NAT gateway."""
DATABASE_CIDRS = ("10.0.16.0/24", "10.0.17.0/24")
"""The accounting database (AccountingStack), in two zones, since Aurora wants two."""

# What nodes call beside S3 and DynamoDB: ParallelCluster's guide ("a single subnet with no internet
# access"), and Session Manager's three. Packages and Route 53 still need the NAT gateway.
INTERFACE_ENDPOINTS = (
    *("autoscaling", "cloudformation", "ec2", "logs", "monitoring", "secretsmanager", "sts"),
    *("ssm", "ssmmessages", "ec2messages"),
)
PRIVATE_PREFIX = 17
"""10.0.128.0/17: compute nodes (one address a network card) and file systems."""


class Network(Construct):
    """Subnets and the nodes' security group: of a VPC of ours, or of one that is there already.

    A VPC of ours has a public and a private subnet, NAT and an S3 gateway endpoint. One that is there
    already is used unchanged; only the security group may be added to it.

    Args:
        flags: `zone` (auto, a zone's name or id), or the ids of an own network; who may come in by SSH.

    Attributes:
        zone_name: zone of the subnets; None for an own network, which has its own.
    """

    def __init__(self, scope: Construct, id_: str, *, flags: NetworkFlags) -> None:
        super().__init__(scope, id_)
        self.zone_name: str | None = None
        self.vpc, self.public_subnet, self.private_subnet = (
            self._imported(flags) if flags.vpc_id else self._created(flags.zone)
        )
        own_group = flags.security_group_id
        self.node_security_group = (
            ec2.SecurityGroup.from_security_group_id(self, "Nodes", own_group, mutable=False)
            if own_group
            else self._node_security_group(ssh_from=flags.ssh_from)
        )
        if flags.endpoints == "private":
            self._add_interface_endpoints()

    def _imported(self, flags: NetworkFlags) -> tuple[ec2.IVpc, ec2.ISubnet, ec2.ISubnet]:
        assert flags.vpc_id and flags.public_subnet_id and flags.private_subnet_id, "rules.py"
        # Only its id is ever used here; CDK wants to hear zones.
        vpc = ec2.Vpc.from_vpc_attributes(self, "Vpc", vpc_id=flags.vpc_id, availability_zones=["unknown"])
        public = ec2.Subnet.from_subnet_id(self, "PublicSubnet", flags.public_subnet_id)
        private = ec2.Subnet.from_subnet_id(self, "PrivateSubnet", flags.private_subnet_id)
        for subnet in (public, private):
            Annotations.of(subnet).acknowledge_warning(
                "@aws-cdk/aws-ec2:noSubnetRouteTableId", "the routes are yours, and nothing here reads them"
            )
        return vpc, public, private

    def _created(self, zone: str) -> tuple[ec2.IVpc, ec2.ISubnet, ec2.ISubnet]:
        vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(CIDR),
            max_azs=None if _is_name(zone) else 1,
            availability_zones=[zone] if _is_name(zone) else None,
            nat_gateways=1,
            subnet_configuration=[
                ec2.SubnetConfiguration(
                    name="Public", subnet_type=ec2.SubnetType.PUBLIC, cidr_mask=PUBLIC_PREFIX
                ),
                ec2.SubnetConfiguration(
                    name="Private", subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS, cidr_mask=PRIVATE_PREFIX
                ),
            ],
            gateway_endpoints={
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3),
                # ParallelCluster keeps its nodes' state there.
                "DynamoDb": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
            },
        )
        public, private = vpc.public_subnets[0], vpc.private_subnets[0]
        if zone != "auto" and not _is_name(zone):
            for subnet in (public, private):
                _pin_zone_id(subnet, zone)
        resource = private.node.default_child
        assert isinstance(resource, ec2.CfnSubnet)
        self.zone_name = resource.attr_availability_zone
        return vpc, public, private

    def _node_security_group(self, *, ssh_from: str | None) -> ec2.ISecurityGroup:
        # L1: CDK's own SecurityGroup cannot have both an egress rule to itself, which EFA needs, and
        # the world. The order matters: creating a SecurityGroupEgress takes away the group's default
        # rule, or any other that allows everything, so the world comes after the group itself.
        group = ec2.CfnSecurityGroup(
            self,
            "NodeSecurityGroup",
            vpc_id=self.vpc.vpc_id,
            group_description="Nodes of training clusters: each other (EFA needs both directions), and out",
            tags=[CfnTag(key="Name", value="training-cluster-nodes")],
        )
        id_, description = group.attr_group_id, "Nodes among themselves, EFA included"
        ec2.CfnSecurityGroupIngress(
            self,
            "NodesIn",
            group_id=id_,
            ip_protocol="-1",
            source_security_group_id=id_,
            description=description,
        )
        nodes_out = ec2.CfnSecurityGroupEgress(
            self,
            "NodesOut",
            group_id=id_,
            ip_protocol="-1",
            destination_security_group_id=id_,
            description=description,
        )
        world_out = ec2.CfnSecurityGroupEgress(
            self,
            "WorldOut",
            group_id=id_,
            ip_protocol="-1",
            cidr_ip="0.0.0.0/0",
            description="Packages and AWS APIs",
        )
        world_out.add_resource_dependency(nodes_out)
        if ssh_from:
            ec2.CfnSecurityGroupIngress(
                self,
                "SshIn",
                group_id=id_,
                ip_protocol="tcp",
                from_port=22,
                to_port=22,
                cidr_ip=ssh_from,
                description="SSH, as ssh_from says",
            )
        return ec2.SecurityGroup.from_security_group_id(self, "Nodes", id_, mutable=False)

    def _add_interface_endpoints(self) -> None:
        group = ec2.SecurityGroup(
            self,
            "EndpointSecurityGroup",
            vpc=self.vpc,
            description="Interface endpoints: the nodes, over HTTPS",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(self.node_security_group, ec2.Port.tcp(443), "AWS APIs: the nodes")
        for service in INTERFACE_ENDPOINTS:
            ec2.InterfaceVpcEndpoint(
                self,
                f"Endpoint-{service}",
                vpc=self.vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=ec2.SubnetSelection(subnets=[self.private_subnet]),
                security_groups=[group],
                open=False,
            )


def _is_name(zone: str) -> bool:
    """Whether the zone is a name (us-east-1a), not an id (use1-az4) or auto."""
    return zone != "auto" and "-az" not in zone


def _pin_zone_id(subnet: ec2.ISubnet, zone_id: str) -> None:
    resource = subnet.node.default_child
    assert isinstance(resource, ec2.CfnSubnet)
    resource.add_property_deletion_override("AvailabilityZone")
    resource.add_property_override("AvailabilityZoneId", zone_id)
