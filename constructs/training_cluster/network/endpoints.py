"""Interface endpoints, for calls of AWS APIs that do not leave the VPC (endpoints=private)."""

from aws_cdk import Aws, CfnCondition, Fn
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from training_cluster.flags.network import CHINA, INTERFACE_ENDPOINTS, endpoint_prefix
from training_cluster.network.vpc import CIDR


class InterfaceEndpoints(Construct):
    """One endpoint a service, in the compute zone, for the whole VPC.

    Each has a private DNS name, which is valid in the whole VPC. So they admit everything that runs there:
    nodes, and the instances that build images, which may belong to another cluster's deploy.

    They have no policies: the nodes' roles state their rights, and a list of all those actions would repeat
    them.
    """

    def __init__(self, scope: Construct, id_: str, *, vpc: ec2.IVpc, subnet: ec2.ISubnet) -> None:
        super().__init__(scope, id_)
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="Interface endpoints: the VPC, over HTTPS",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(ec2.Peer.ipv4(CIDR), ec2.Port.tcp(443), "AWS APIs: the VPC")
        china = CfnCondition(self, "China", expression=Fn.condition_equals(Aws.PARTITION, CHINA))
        for service in INTERFACE_ENDPOINTS:
            prefix, elsewhere = endpoint_prefix(service, CHINA), endpoint_prefix(service, "aws")
            if prefix != elsewhere:
                # The CDK knows the prefix of each region, but the stack is deployed to any region.
                prefix = Fn.condition_if(china.logical_id, prefix, elsewhere).to_string()
            ec2.InterfaceVpcEndpoint(
                self,
                service,
                vpc=vpc,
                service=ec2.InterfaceVpcEndpointAwsService(service, prefix),
                subnets=ec2.SubnetSelection(subnets=[subnet]),
                security_groups=[group],
                open=False,
            )
