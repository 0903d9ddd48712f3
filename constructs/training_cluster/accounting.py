"""Slurm's accounting database: Aurora MySQL, serverless, in two zones of our VPC."""

from __future__ import annotations

from aws_cdk import CfnTag, Fn, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from training_cluster.network import DATABASE_CIDRS
from training_cluster.resource_ids import Database

ENGINE = rds.DatabaseClusterEngine.aurora_mysql(version=rds.AuroraMysqlEngineVersion.VER_3_08_2)
USER = "slurm"

# Aurora capacity units: half of one is the least that never pauses, and slurmdbd is always connected.
MIN_ACU = 0.5
MAX_ACU = 4


class Accounting(Construct):
    """One database for the accounting of all clusters; each keeps its own schema in it.

    Attributes:
        database: what a cluster config needs of it.
    """

    def __init__(
        self, scope: Construct, id_: str, *, vpc: ec2.IVpc, node_security_group: ec2.ISecurityGroup
    ) -> None:
        super().__init__(scope, id_)
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=vpc,
            description="Slurm accounting: the head node, over MySQL",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(node_security_group, ec2.Port.tcp(3306), "slurmdbd on the head node")
        # Plain text, not JSON: ParallelCluster reads the secret as the password itself.
        secret = secretsmanager.Secret(
            self,
            "Password",
            description="Password of Slurm's accounting database",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=32, exclude_punctuation=True
            ),
        )
        cluster = rds.DatabaseCluster(
            self,
            "Database",
            engine=ENGINE,
            credentials=rds.Credentials.from_password(USER, secret.secret_value),
            writer=rds.ClusterInstance.serverless_v2("Writer"),
            serverless_v2_min_capacity=MIN_ACU,
            serverless_v2_max_capacity=MAX_ACU,
            vpc=vpc,
            subnet_group=self._subnet_group(vpc),
            security_groups=[group],
            storage_encrypted=True,
            deletion_protection=True,
            removal_policy=RemovalPolicy.RETAIN,
        )
        for kept in (secret, group):
            kept.apply_removal_policy(RemovalPolicy.RETAIN)
        endpoint = cluster.cluster_endpoint
        self.database = Database(
            uri=f"{endpoint.hostname}:{endpoint.port}", user=USER, secret_arn=secret.secret_arn
        )

    def _subnet_group(self, vpc: ec2.IVpc) -> rds.ISubnetGroup:
        subnets = [
            ec2.CfnSubnet(
                self,
                f"Subnet{i + 1}",
                vpc_id=vpc.vpc_id,
                cidr_block=cidr,
                availability_zone=Fn.select(i, Fn.get_azs()),
                tags=[CfnTag(key="Name", value=f"training-cluster-accounting-{i + 1}")],
            )
            for i, cidr in enumerate(DATABASE_CIDRS)
        ]
        for subnet in subnets:
            subnet.apply_removal_policy(RemovalPolicy.RETAIN)
        return rds.SubnetGroup(
            self,
            "Subnets",
            description="Slurm accounting: two zones, as Aurora wants",
            vpc=vpc,
            vpc_subnets=ec2.SubnetSelection(
                subnets=[
                    ec2.Subnet.from_subnet_id(self, f"Imported{i + 1}", subnet.ref)
                    for i, subnet in enumerate(subnets)
                ]
            ),
            removal_policy=RemovalPolicy.RETAIN,
        )
