"""What holds data: the bucket, the Lustre file system, EFS. None is deleted with its stack."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy, Size, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from training_cluster.storage_flags import StorageFlags

# Lustre's own ports (FSx for Lustre guide, "File system access control with Amazon VPC"). CDK's
# construct opens the group to itself, for the servers among themselves.
LUSTRE_PORTS = (ec2.Port.tcp(988), ec2.Port.tcp_range(1018, 1023))
LUSTRE_VERSION = fsx.FileSystemTypeVersion.V_2_15
NFS_PORT = ec2.Port.tcp(2049)

KEPT = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE


class Storage(Construct):
    """Bucket, FSx for Lustre linked to it, and EFS, retained whatever happens to the stack.

    `datasets/` of the bucket appears under /fsx/datasets; what is written to /fsx/checkpoints goes to
    `checkpoints/` of the bucket. Nothing that is deleted on one side is deleted on the other.
    A file system that is given by id is used as it is, and not linked; a new one is linked to a bucket
    that is given, too.

    Attributes:
        bucket, lustre_id, efs_id: what was made, or what was given.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        node_security_group: ec2.ISecurityGroup,
        flags: StorageFlags,
    ) -> None:
        super().__init__(scope, id_)
        self._vpc, self._subnet, self._nodes = vpc, subnet, node_security_group
        self.bucket = (
            s3.Bucket.from_bucket_name(self, "Bucket", flags.bucket_name)
            if flags.bucket_name
            else self._bucket()
        )
        self.lustre_id = flags.fsx_id or self._lustre(flags)
        self.efs_id = flags.efs_id or self._efs(flags.efs_mibps)

    def _bucket(self) -> s3.Bucket:
        return s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            versioned=True,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            removal_policy=KEPT,
            lifecycle_rules=[
                s3.LifecycleRule(id="BrokenUploads", abort_incomplete_multipart_upload_after=Duration.days(7))
            ],
        )

    def _lustre(self, flags: StorageFlags) -> str:
        durable = flags.fsx_type == "persistent2"
        kind = fsx.LustreDeploymentType
        file_system = fsx.LustreFileSystem(
            self,
            "Lustre",
            vpc=self._vpc,
            vpc_subnet=self._subnet,
            security_group=self._lustre_security_group(),
            storage_capacity_gib=flags.fsx_gib,
            file_system_type_version=LUSTRE_VERSION,
            lustre_configuration=fsx.LustreConfiguration(
                deployment_type=kind.PERSISTENT_2 if durable else kind.SCRATCH_2,
                per_unit_storage_throughput=int(flags.fsx_mbps_per_tib) if durable else None,
                data_compression_type=fsx.LustreDataCompressionType.LZ4,
            ),
            removal_policy=KEPT,
        )
        Tags.of(file_system).add("Name", "training-cluster")
        self._link("Datasets", "datasets", file_system, imports=True)
        self._link("Checkpoints", "checkpoints", file_system, imports=False)
        return file_system.file_system_id

    def _link(self, id_: str, folder: str, file_system: fsx.LustreFileSystem, *, imports: bool) -> None:
        # Never DELETED, in neither direction: a file that is removed by mistake is still on the other side.
        events = ["NEW", "CHANGED"]
        kind = fsx.CfnDataRepositoryAssociation
        policy = (
            kind.S3Property(auto_import_policy=kind.AutoImportPolicyProperty(events=events))
            if imports
            else kind.S3Property(auto_export_policy=kind.AutoExportPolicyProperty(events=events))
        )
        association = fsx.CfnDataRepositoryAssociation(
            self,
            id_,
            file_system_id=file_system.file_system_id,
            file_system_path=f"/{folder}",
            data_repository_path=f"s3://{self.bucket.bucket_name}/{folder}/",
            batch_import_meta_data_on_create=imports,
            s3=policy,
        )
        association.apply_removal_policy(KEPT)

    def _efs(self, mibps: int | None) -> str:
        group = ec2.SecurityGroup(
            self,
            "EfsSecurityGroup",
            vpc=self._vpc,
            description="EFS: nodes, over NFS",
            allow_all_outbound=False,
        )
        group.apply_removal_policy(KEPT)
        group.add_ingress_rule(self._nodes, NFS_PORT, "NFS clients: the nodes")
        group.add_egress_rule(self._nodes, NFS_PORT, "EFS answers the nodes")
        elastic = mibps is None
        file_system = efs.FileSystem(
            self,
            "Efs",
            vpc=self._vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=[self._subnet]),
            security_group=group,
            encrypted=True,
            throughput_mode=efs.ThroughputMode.ELASTIC if elastic else efs.ThroughputMode.PROVISIONED,
            provisioned_throughput_per_second=None if elastic else Size.mebibytes(mibps or 0),
            # CDK would add a statement of its own, which lets clients write without TLS.
            allow_anonymous_access=True,
            file_system_policy=_over_tls_only(),
            removal_policy=KEPT,
        )
        return file_system.file_system_id

    def _lustre_security_group(self) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "LustreSecurityGroup",
            vpc=self._vpc,
            description="FSx for Lustre: nodes and its own servers, on the Lustre ports",
            allow_all_outbound=False,
        )
        # The group outlives a deleted stack with the file system that stands in it.
        group.apply_removal_policy(KEPT)
        for port in LUSTRE_PORTS:
            group.add_ingress_rule(self._nodes, port, "Lustre clients: the nodes")
            group.add_egress_rule(self._nodes, port, "Lustre servers answer the nodes")
            group.add_egress_rule(group, port, "Lustre servers among themselves")
        return group


def _over_tls_only() -> iam.PolicyDocument:
    """Whoever the security group lets in may mount, over TLS (ParallelCluster's EncryptionInTransit)."""
    return iam.PolicyDocument(
        statements=[
            iam.PolicyStatement(
                principals=[iam.AnyPrincipal()],
                actions=[f"elasticfilesystem:Client{right}" for right in ("Mount", "Write", "RootAccess")],
                conditions={
                    "Bool": {
                        "aws:SecureTransport": "true",
                        "elasticfilesystem:AccessedViaMountTarget": "true",
                    }
                },
            )
        ]
    )
