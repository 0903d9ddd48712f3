"""Storage: the bucket, the Lustre file system and EFS. None is deleted with its stack."""

from dataclasses import dataclass

from aws_cdk import Duration, Size
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_efs as efs
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from constructs import Construct

from training_cluster.acknowledgements import acknowledge
from training_cluster.catalog.ports import NFS_PORT
from training_cluster.flags.storage import StorageFlags
from training_cluster.functions.guard import RETAINED
from training_cluster.storage.lustre import link, lustre_file_system, retain_with_rules

OLD_VERSIONS = Duration.days(90)
"""Retention of overwritten and deleted objects: a quarter, in which the loss of a checkpoint is noticed.
Every overwritten checkpoint is paid until then."""
BROKEN_UPLOADS = Duration.days(7)


@dataclass(frozen=True, kw_only=True)
class SharedStorage:
    """Storage for other stacks: imports by fixed names, whatever the flags are."""

    bucket: s3.IBucket
    lustre_id: str
    efs_id: str


class Storage(Construct):
    """Bucket, FSx for Lustre linked to it, and EFS, retained whatever happens to the stack.

    `datasets/` of the bucket appears under /fsx/datasets; files in /fsx/checkpoints are exported to
    `checkpoints/` of the bucket. A deletion on one side never deletes on the other.
    A file system that is given by id is used unchanged and not linked; a new one is linked to the bucket,
    even to a given one.

    Attributes:
        bucket_name, lustre_id, efs_id: name and ids, new or given. For the own stack; others use
            StorageStack's `storage`.
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
        self.bucket_name = flags.bucket_name or self._bucket()
        self.lustre_id = flags.fsx_id or self._lustre(flags)
        self.efs_id = flags.efs_id or self._efs(flags.efs_mibps)

    def _bucket(self) -> str:
        bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            versioned=True,
            enforce_ssl=True,
            minimum_tls_version=1.2,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            removal_policy=RETAINED,
            # No rule here ever deletes a current object.
            lifecycle_rules=[
                s3.LifecycleRule(id="BrokenUploads", abort_incomplete_multipart_upload_after=BROKEN_UPLOADS),
                s3.LifecycleRule(
                    id="OldVersions",
                    noncurrent_version_expiration=OLD_VERSIONS,
                    # A delete marker without any version left is removed.
                    expired_object_delete_marker=True,
                ),
            ],
        )
        reason = "who reads what is CloudTrail's to log, if wanted; this log takes another bucket"
        acknowledge(bucket, "AwsSolutions-S1", reason)
        assert bucket.policy, "enforce_ssl makes one"
        bucket.policy.apply_removal_policy(RETAINED)
        return bucket.bucket_name

    def _lustre(self, flags: StorageFlags) -> str:
        id_ = lustre_file_system(
            self, vpc=self._vpc, subnet=self._subnet, node_security_group=self._nodes, flags=flags
        ).file_system_id
        datasets, checkpoints = (
            link(
                self,
                name,
                folder=name.lower(),
                bucket_name=self.bucket_name,
                file_system_id=id_,
                imports=name == "Datasets",
            )
            for name in ("Datasets", "Checkpoints")
        )
        # One of two associations that are created at once fails: "Amazon FSx does not have the required
        # permissions for the S3 bucket" (hashicorp/terraform-provider-aws 24678).
        checkpoints.add_resource_dependency(datasets)
        return id_

    def _efs(self, mibps: int | None) -> str:
        group = ec2.SecurityGroup(
            self,
            "EfsSecurityGroup",
            vpc=self._vpc,
            description="EFS: nodes, over NFS",
            allow_all_outbound=False,
        )
        port = ec2.Port.tcp(NFS_PORT)
        group.add_ingress_rule(self._nodes, port, "NFS clients: the nodes")
        group.add_egress_rule(self._nodes, port, "EFS answers the nodes")
        retain_with_rules(group)
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
            # CDK would add a statement that lets clients write without TLS.
            allow_anonymous_access=True,
            file_system_policy=_over_tls_only(),
            removal_policy=RETAINED,
        )
        _retain_mount_target(file_system)
        return file_system.file_system_id


def _retain_mount_target(file_system: efs.FileSystem) -> None:
    """Retain the mount target, without which nobody mounts the file system; efs_id adopts both."""
    (target,) = [part for part in file_system.node.find_all() if isinstance(part, efs.CfnMountTarget)]
    target.apply_removal_policy(RETAINED)
    # CDK derives the id from the subnet; another id would create a second target, and a zone has only one.
    target.override_logical_id("StorageEfsMountTarget")


def _over_tls_only() -> iam.PolicyDocument:
    """Return a policy that lets every client mount over TLS only (ParallelCluster's EncryptionInTransit)."""
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
