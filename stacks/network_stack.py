"""NetworkStack: what all clusters share. Depends on network flags only, never on a family."""

from __future__ import annotations

from aws_cdk import CfnOutput, Stack, Token
from constructs import Construct

from training_cluster.network import Network
from training_cluster.settings import Settings


class NetworkStack(Stack):
    """VPC, subnets, NAT, S3 endpoint, the nodes' security group."""

    def __init__(self, scope: Construct, id_: str, *, settings: Settings) -> None:
        super().__init__(scope, id_, description="Training Cluster: network, shared by all clusters")
        self.network = Network(self, "Network", flags=settings)
        CfnOutput(self, "VpcId", value=self.network.vpc.vpc_id)
        if self.network.zone_name:
            CfnOutput(self, "Zone", value=self.network.zone_name)
        # A fixed set of exports, whatever the flags: an export in use cannot change or go away. What
        # you brought yourself is no resource of this stack, and needs none.
        for value in (
            self.network.vpc.vpc_id,
            self.network.public_subnet.subnet_id,
            self.network.private_subnet.subnet_id,
            self.network.node_security_group.security_group_id,
        ):
            if Token.is_unresolved(value):
                self.export_value(value)
