"""Slurm's accounting database: Aurora MySQL, serverless, in two zones of the VPC that NetworkStack makes."""

from aws_cdk import CfnResource, Duration
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from training_cluster.acknowledgements import acknowledge
from training_cluster.catalog.families import load_base
from training_cluster.catalog.ports import MYSQL_PORT
from training_cluster.cluster.resource_ids import Database
from training_cluster.functions.guard import RETAINED
from training_cluster.network.network import DATABASE_CIDRS, Network

# A minor version with long-term support (release notes of 3.10.0): three years instead of one.
ENGINE = rds.DatabaseClusterEngine.aurora_mysql(version=rds.AuroraMysqlEngineVersion.VER_3_10_4)
USER = "slurm"


class Accounting(Construct):
    """One database for the accounting of all clusters, each with its own schema.

    All of its resources are retained, not only the database: see _retain.

    Attributes:
        database: address, user and secret for a cluster config.
    """

    def __init__(self, scope: Construct, id_: str, *, network: Network) -> None:
        super().__init__(scope, id_)
        group = ec2.SecurityGroup(
            self,
            "SecurityGroup",
            vpc=network.vpc,
            description="Slurm accounting: the head node, over MySQL",
            allow_all_outbound=False,
        )
        group.add_ingress_rule(
            network.node_security_group, ec2.Port.tcp(MYSQL_PORT), "slurmdbd on the head node"
        )
        # Plain text, not JSON: ParallelCluster reads the secret as the password itself.
        secret = secretsmanager.Secret(
            self,
            "Password",
            description="Password of Slurm's accounting database",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                password_length=32, exclude_punctuation=True
            ),
        )
        size = load_base().accounting_database
        cluster = rds.DatabaseCluster(
            self,
            "Database",
            engine=ENGINE,
            credentials=rds.Credentials.from_password(USER, secret.secret_value),
            # AWS patches a release with long-term support itself; an upgrade would leave it (release notes).
            writer=rds.ClusterInstance.serverless_v2("Writer", auto_minor_version_upgrade=False),
            serverless_v2_min_capacity=size.min_acu,
            serverless_v2_max_capacity=size.max_acu,
            vpc=network.vpc,
            vpc_subnets=self._subnets(network),
            parameter_group=self._parameters(),
            security_groups=[group],
            storage_encrypted=True,
            deletion_protection=True,
            # A week, in which somebody notices; Aurora's default is a day.
            backup=rds.BackupProps(retention=Duration.days(7)),
        )
        _acknowledge(secret, cluster)
        _retain(self)
        endpoint = cluster.cluster_endpoint
        self.database = Database(
            uri=f"{endpoint.hostname}:{endpoint.port}", user=USER, secret_arn=secret.secret_arn
        )

    def _subnets(self, network: Network) -> ec2.SubnetSelection:
        """Add two subnets without a route to the internet."""
        subnets: list[ec2.ISubnet] = [
            ec2.PrivateSubnet(
                self,
                f"Subnet{number}",
                vpc_id=network.vpc.vpc_id,
                cidr_block=cidr,
                availability_zone=zone_name,
            )
            for number, (cidr, zone_name) in enumerate(
                zip(DATABASE_CIDRS, network.zone_names, strict=True), start=1
            )
        ]
        return ec2.SubnetSelection(subnets=subnets)

    def _parameters(self) -> rds.ParameterGroup:
        group = rds.ParameterGroup(
            self,
            "Parameters",
            engine=ENGINE,
            description="Slurm accounting: TLS only, and slurmdbd's lock wait timeout",
            # From ParallelCluster's own template of such a database (cloudformation/database).
            parameters={"require_secure_transport": "ON", "innodb_lock_wait_timeout": "900"},
        )
        group.bind_to_cluster()
        return group


def _retain(accounting: Construct) -> None:
    """Retain all resources when their stack is deleted, since the database needs them.

    A database cluster answers nobody without its instance, and no node without the rule; its subnet group
    cannot be deleted before it (RDS), so the stack could not either.
    """
    for part in accounting.node.find_all():
        if isinstance(part, CfnResource):
            part.apply_removal_policy(RETAINED)


def _acknowledge(secret: secretsmanager.Secret, cluster: rds.DatabaseCluster) -> None:
    # ParallelCluster's guide, "Database rotation": a script on the head node gives slurmdbd a new password.
    acknowledge(
        secret, "AwsSolutions-SMG4", "a person gives slurmdbd a new password, by a script on the head node"
    )
    for rule, reason in {
        "RDS6": "slurmdbd can log in with a password, not with IAM",
        "RDS11": "the network lets in nodes alone, and scanning for MySQL finds it on any port",
        "RDS14": "a way back is Aurora's backup; to rewind in place takes all clusters' accounting along",
    }.items():
        acknowledge(cluster, f"AwsSolutions-{rule}", reason)
