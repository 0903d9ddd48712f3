"""The network: one VPC in one zone, where EFA works and a NAT gateway is paid once."""

from __future__ import annotations

from aws_cdk import CfnTag
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

CIDR = "10.0.0.0/16"
PUBLIC_PREFIX = 20
"""10.0.0.0/20: head and login nodes, the NAT gateway."""
PRIVATE_PREFIX = 17
"""10.0.128.0/17: compute nodes (one address a network card) and file systems."""


class Network(Construct):
    """VPC with a public and a private subnet, NAT, S3 gateway endpoint and the nodes' security group.

    Args:
        zone: `auto` (the region's first), a zone name or a zone id.
    """

    def __init__(self, scope: Construct, id_: str, *, zone: str) -> None:
        super().__init__(scope, id_)
        self.vpc = ec2.Vpc(
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
                "S3": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.S3)
            },
        )
        self.public_subnet = self.vpc.public_subnets[0]
        self.private_subnet = self.vpc.private_subnets[0]
        if zone != "auto" and not _is_name(zone):
            for subnet in (self.public_subnet, self.private_subnet):
                _pin_zone_id(subnet, zone)
        private = self.private_subnet.node.default_child
        assert isinstance(private, ec2.CfnSubnet)
        self.zone_name = private.attr_availability_zone
        self.node_security_group = self._node_security_group()

    def _node_security_group(self) -> ec2.ISecurityGroup:
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
        return ec2.SecurityGroup.from_security_group_id(self, "Nodes", id_, mutable=False)


def _is_name(zone: str) -> bool:
    """Whether the zone is a name (us-east-1a), not an id (use1-az4) or auto."""
    return zone != "auto" and "-az" not in zone


def _pin_zone_id(subnet: ec2.ISubnet, zone_id: str) -> None:
    resource = subnet.node.default_child
    assert isinstance(resource, ec2.CfnSubnet)
    resource.add_property_deletion_override("AvailabilityZone")
    resource.add_property_override("AvailabilityZoneId", zone_id)
