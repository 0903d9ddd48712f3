"""The network for the other stacks, made by NetworkStack or by the user."""

from aws_cdk import Annotations
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

DATABASE_CIDRS = ("10.0.16.0/24", "10.0.17.0/24")
"""Subnets of the accounting database in two zones, which Aurora requires; vpc.py has the other subnets."""


class Network(Construct):
    """VPC, subnets and the nodes' security group by their ids; it adds no resource.

    Args:
        vpc_id, public_subnet_id, private_subnet_id, node_security_group_id: ids, which may be tokens.
        guard_token: address of the function that guards the first stack and each cluster.
        zone_names: names of two zones, the network's first; empty for an existing network.

    Attributes:
        vpc: the VPC with its id only, without its subnets and zones.
        public_subnet: subnet of head and login nodes.
        private_subnet: subnet of compute nodes and file systems.
        node_security_group: group of all nodes; no rule is ever added through this attribute.
        guard_token, zone_names: the arguments.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        vpc_id: str,
        public_subnet_id: str,
        private_subnet_id: str,
        node_security_group_id: str,
        guard_token: str,
        zone_names: tuple[str, ...] = (),
    ) -> None:
        super().__init__(scope, id_)
        # Only the id is used, but CDK requires zones.
        self.vpc = ec2.Vpc.from_vpc_attributes(self, "Vpc", vpc_id=vpc_id, availability_zones=["unknown"])
        self.guard_token, self.zone_names = guard_token, zone_names
        self.public_subnet = self._subnet("PublicSubnet", public_subnet_id)
        self.private_subnet = self._subnet("PrivateSubnet", private_subnet_id)
        self.node_security_group = ec2.SecurityGroup.from_security_group_id(
            self, "Nodes", node_security_group_id, mutable=False
        )

    def _subnet(self, id_: str, subnet_id: str) -> ec2.ISubnet:
        subnet = ec2.Subnet.from_subnet_id(self, id_, subnet_id)
        Annotations.of(subnet).acknowledge_warning(
            "@aws-cdk/aws-ec2:noSubnetRouteTableId", "nothing here reads its routes"
        )
        return subnet
