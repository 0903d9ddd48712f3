"""VPC that NetworkStack makes, in one zone, where EFA works and one NAT gateway is paid; its endpoints."""

from collections.abc import Sequence

from aws_cdk import Aws, CfnCondition, Fn
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from training_cluster.cluster.fleet import PRIVATE_PREFIX
from training_cluster.flags.network import CHINA, endpoint_prefix

CIDR = "10.0.0.0/16"
PUBLIC_PREFIX = 20
"""Prefix length of 10.0.0.0/20: head and login nodes, the NAT gateway."""

FLOW_LOG_RETENTION = logs.RetentionDays.THREE_MONTHS
"""Retention of a quarter, for an audit; the logs of our functions have the same."""


class ComputeVpc(Construct):
    """VPC with a public and a private subnet, NAT, gateway endpoints for S3 and DynamoDB, flow logs.

    Args:
        zone_name: zone of both subnets; a token. Their logical ids do not depend on it.

    Attributes:
        vpc, public_subnet, private_subnet: for the resources inside them.
    """

    def __init__(self, scope: Construct, id_: str, *, zone_name: str) -> None:
        super().__init__(scope, id_)
        self.vpc = ec2.Vpc(
            self,
            "Vpc",
            ip_addresses=ec2.IpAddresses.cidr(CIDR),
            availability_zones=[zone_name],
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
                # ParallelCluster stores its nodes' state in DynamoDB.
                "DynamoDb": ec2.GatewayVpcEndpointOptions(service=ec2.GatewayVpcEndpointAwsService.DYNAMODB),
            },
        )
        self.public_subnet, self.private_subnet = self.vpc.public_subnets[0], self.vpc.private_subnets[0]
        self._log_flows()

    def _log_flows(self) -> None:
        """Add flow logs; they are retained when the stack is deleted, since an audit may come later.

        They record all traffic: an incident is about accepted connections. A record is one connection in one
        minute, whatever its bytes, and a node has few, long ones (Lustre, Slurm). EFA's own protocol is not
        recorded (unconfirmed).
        """
        log_group = logs.LogGroup(self, "FlowLogs", retention=FLOW_LOG_RETENTION)
        own_flows_only = {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
        role = iam.Role(
            self,
            "FlowLogRole",
            assumed_by=iam.ServicePrincipal("vpc-flow-logs.amazonaws.com", conditions=own_flows_only),
            description="Writes the network's flow logs",
        )
        flow_log = self.vpc.add_flow_log(
            "FlowLog",
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(log_group, role),
            traffic_type=ec2.FlowLogTrafficType.ALL,
            # For NAT, endpoints and file systems; Nitro instances always have a minute at most (VPC guide,
            # "Flow log limitations").
            max_aggregation_interval=ec2.FlowLogMaxAggregationInterval.TEN_MINUTES,
        )
        flow_log.node.add_dependency(role)  # with its policy, or the first deliveries fail


class InterfaceEndpoints(Construct):
    """One endpoint a service, in the compute zone, for the whole VPC.

    Each has a private DNS name, which is valid in the whole VPC. So they admit everything that runs there:
    nodes, and the instances that build images, which may belong to another cluster's deploy.

    They have no policies: the nodes' roles state their rights, and a list of all those actions would repeat
    them.
    """

    def __init__(
        self, scope: Construct, id_: str, *, services: Sequence[str], vpc: ec2.IVpc, subnet: ec2.ISubnet
    ) -> None:
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
        for service in services:
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
