"""FSx for Lustre: the file system, its links to the bucket, its security group."""

from aws_cdk import CfnResource, Tags
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from constructs import Construct

from training_cluster.catalog.ports import LUSTRE_PORTS
from training_cluster.flags.storage import StorageFlags
from training_cluster.functions.guard import RETAINED

LUSTRE_VERSION = fsx.FileSystemTypeVersion.V_2_15


def lustre_file_system(
    scope: Construct,
    *,
    vpc: ec2.IVpc,
    subnet: ec2.ISubnet,
    node_security_group: ec2.ISecurityGroup,
    flags: StorageFlags,
) -> fsx.LustreFileSystem:
    """Add a file system to a scope, with the id Lustre.

    It is always encrypted, with FSx's own key (API reference, CreateFileSystem's KmsKeyId). FSx makes no
    backups of a file system that is linked to a bucket (guide, "Protecting your data with backups"); the
    bucket is the durable copy.
    """
    durable, kind = flags.fsx_type == "persistent2", fsx.LustreDeploymentType
    group = _security_group(scope, vpc, node_security_group) if flags.fsx_efa == "off" else None
    file_system = fsx.LustreFileSystem(
        scope,
        "Lustre",
        vpc=vpc,
        vpc_subnet=subnet,
        # With EFA it has the nodes' group, which is open to itself in both directions for all traffic, as EFA
        # requires; an egress rule that is added to the nodes' group from here would remove another one
        # (network/security_group.py: the order matters).
        security_group=group or node_security_group,
        storage_capacity_gib=flags.fsx_gib,
        file_system_type_version=LUSTRE_VERSION,
        lustre_configuration=fsx.LustreConfiguration(
            deployment_type=kind.PERSISTENT_2 if durable else kind.SCRATCH_2,
            per_unit_storage_throughput=int(flags.fsx_mbps_per_tib) if durable else None,
            data_compression_type=fsx.LustreDataCompressionType.LZ4,
        ),
        removal_policy=RETAINED,
    )
    Tags.of(file_system).add("Name", "training-cluster")
    if group:
        retain_with_rules(group)
        # FSx checks the rules when the file system is created (guide, "Troubleshooting": "do not permit
        # Lustre LNET network traffic on port 988").
        file_system.node.add_dependency(group)
    else:
        _enable_efa(file_system)
    return file_system


def link(
    scope: Construct, id_: str, *, folder: str, bucket_name: str, file_system_id: str, imports: bool
) -> fsx.CfnDataRepositoryAssociation:
    """Link a folder of a file system to the bucket's folder of the same name.

    Args:
        imports: True to import from the bucket, False to export to it.
    """
    # DELETED in neither direction: a file that is deleted by mistake still exists on the other side.
    events = ["NEW", "CHANGED"]
    kind = fsx.CfnDataRepositoryAssociation
    policy = (
        kind.S3Property(auto_import_policy=kind.AutoImportPolicyProperty(events=events))
        if imports
        else kind.S3Property(auto_export_policy=kind.AutoExportPolicyProperty(events=events))
    )
    association = fsx.CfnDataRepositoryAssociation(
        scope,
        id_,
        file_system_id=file_system_id,
        file_system_path=f"/{folder}",
        data_repository_path=f"s3://{bucket_name}/{folder}/",
        # Also for exported files: a new file system on an old bucket must show the checkpoints for a resume.
        batch_import_meta_data_on_create=True,
        s3=policy,
    )
    association.apply_removal_policy(RETAINED)
    return association


def retain_with_rules(group: ec2.SecurityGroup) -> None:
    """Retain a security group and its rules when their stack is deleted.

    Without its rules nobody would reach the file system, which is retained, too.
    """
    for part in group.node.find_all():
        if isinstance(part, CfnResource):
            part.apply_removal_policy(RETAINED)


def _security_group(
    scope: Construct, vpc: ec2.IVpc, node_security_group: ec2.ISecurityGroup
) -> ec2.SecurityGroup:
    group = ec2.SecurityGroup(
        scope,
        "LustreSecurityGroup",
        vpc=vpc,
        description="FSx for Lustre: nodes and its own servers, on the Lustre ports",
        allow_all_outbound=False,
    )
    # CDK's construct adds the ingress rule for traffic among the servers.
    for first, last in LUSTRE_PORTS:
        port = ec2.Port.tcp(first) if first == last else ec2.Port.tcp_range(first, last)
        group.add_ingress_rule(node_security_group, port, "Lustre clients: the nodes")
        group.add_egress_rule(node_security_group, port, "Lustre servers answer the nodes")
        group.add_egress_rule(group, port, "Lustre servers among themselves")
    return group


def _enable_efa(file_system: fsx.LustreFileSystem) -> None:
    """Enable EFA, for which CDK's construct has no property yet.

    FSx requires a metadata configuration with it (guide, "EFA-enabled file systems"); AUTOMATIC follows the
    capacity.
    """
    resource = file_system.node.default_child
    assert isinstance(resource, CfnResource)
    resource.add_property_override("LustreConfiguration.EfaEnabled", True)
    resource.add_property_override("LustreConfiguration.MetadataConfiguration", {"Mode": "AUTOMATIC"})
