"""Interface endpoints: calls of AWS APIs that stay in the VPC (endpoints=private)."""

from __future__ import annotations

from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from training_cluster.network_flags import INTERFACE_ENDPOINTS


class InterfaceEndpoints(Construct):
    """One endpoint a service, in the compute zone, for the nodes only.

    Without policies of their own: what nodes may do stands in their roles, and a list of all those actions
    would only repeat it.
    """

    def __init__(
        self, scope: Construct, id_: str, *, vpc: ec2.IVpc, subnet: ec2.ISubnet, nodes: ec2.ISecurityGroup
    ) -> None:
        super().__init__(scope, id_)
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="Interface endpoints: the nodes, over HTTPS",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(nodes, ec2.Port.tcp(443), "AWS APIs: the nodes")
        for service in INTERFACE_ENDPOINTS:
            ec2.InterfaceVpcEndpoint(
                self,
                service,
                vpc=vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service),
                subnets=ec2.SubnetSelection(subnets=[subnet]),
                security_groups=[group],
                open=False,
            )
