"""What holds data: the bucket and the Lustre file system. Neither is deleted with its stack."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_s3 as s3
from constructs import Construct

# Lustre's own ports (FSx for Lustre guide, "File system access control with Amazon VPC"). CDK's
# construct opens the group to itself, for the servers among themselves.
LUSTRE_PORTS = (ec2.Port.tcp(988), ec2.Port.tcp_range(1018, 1023))
LUSTRE_VERSION = fsx.FileSystemTypeVersion.V_2_15


class Storage(Construct):
    """Bucket and FSx for Lustre, retained whatever happens to the stack.

    Args:
        capacity_gib: Lustre capacity, 1200 or a multiple of 2400.
        throughput_mbps_per_tib: 125, 250, 500 or 1000 MB/s a TiB.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        node_security_group: ec2.ISecurityGroup,
        capacity_gib: int,
        throughput_mbps_per_tib: int,
    ) -> None:
        super().__init__(scope, id_)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            versioned=True,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
            lifecycle_rules=[
                s3.LifecycleRule(id="BrokenUploads", abort_incomplete_multipart_upload_after=Duration.days(7))
            ],
        )
        self.file_system = fsx.LustreFileSystem(
            self,
            "Lustre",
            vpc=vpc,
            vpc_subnet=subnet,
            security_group=self._lustre_security_group(vpc, node_security_group),
            storage_capacity_gib=capacity_gib,
            file_system_type_version=LUSTRE_VERSION,
            lustre_configuration=fsx.LustreConfiguration(
                deployment_type=fsx.LustreDeploymentType.PERSISTENT_2,
                per_unit_storage_throughput=throughput_mbps_per_tib,
                data_compression_type=fsx.LustreDataCompressionType.LZ4,
            ),
            removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
        )
        Tags.of(self.file_system).add("Name", "training-cluster")

    def _lustre_security_group(
        self, vpc: ec2.IVpc, node_security_group: ec2.ISecurityGroup
    ) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "LustreSecurityGroup",
            vpc=vpc,
            description="FSx for Lustre: nodes and its own servers, on the Lustre ports",
            allow_all_outbound=False,
        )
        # The group outlives a deleted stack with the file system that stands in it.
        group.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
        for port in LUSTRE_PORTS:
            group.add_ingress_rule(node_security_group, port, "Lustre clients: the nodes")
            group.add_egress_rule(node_security_group, port, "Lustre servers answer the nodes")
            group.add_egress_rule(group, port, "Lustre servers among themselves")
        return group
