"""Hooks into moto, none of which is its public API."""

from rehearsal.local_aws.emulators.hooks import Hook

BLOCK_DEVICES = Hook(
    target="moto.ec2.responses.instances:InstanceResponse._validate_block_device_mapping",
    parameters=("device_mapping",),
    why="dry-run RunInstances must accept instance stores, and root volumes without a size",
)
FILE_SYSTEM = Hook(
    target="moto.fsx.models:FileSystem.to_dict",
    parameters=("self",),
    why="DescribeFileSystems lacks lifecycle, VPC, interfaces and version",
)
FILE_SYSTEMS = Hook(
    target="moto.fsx.models:FSxBackend.create_file_system",
    parameters=(
        "self",
        "client_request_token",
        "file_system_type",
        "storage_capacity",
        "storage_type",
        "subnet_ids",
        "security_group_ids",
        "tags",
        "kms_key_id",
        "windows_configuration",
        "lustre_configuration",
        "ontap_configuration",
        "file_system_type_version",
        "open_zfs_configuration",
    ),
    why="AWS::FSx::FileSystem",
)
EC2_PARAMETER = Hook(
    target="moto.ec2.responses:EC2Response._get_param",
    parameters=("self", "param_name", "if_none"),
    why="the parameters of EC2 actions that we add",
)
EFS_BACKUP = Hook(
    target="moto.efs.models:FileSystem.backup_policy",
    parameters=None,
    why="it reads _backup, which a change of a template's BackupPolicy sets",
)
EFS_IDS = Hook(
    target="moto.efs.models:mock_random",
    parameters=None,
    why="moto's ids of EFS have 8 digits; ParallelCluster's schema requires AWS's 17",
)
IMAGE_BLOCK_DEVICES = Hook(
    target="moto.ec2.models.amis:Ami.block_device_mappings",
    parameters=None,
    why="moto's images have 15 GiB; ParallelCluster's have 35",
)
DELETE_FILE_SYSTEM = Hook(
    target="moto.fsx.models:FSxBackend.delete_file_system",
    parameters=(
        "self",
        "file_system_id",
        "client_request_token",
        "windows_configuration",
        "lustre_configuration",
        "open_zfs_configuration",
    ),
    why="its network interfaces and associations are deleted with it",
)
CREATE_ROUTE = Hook(
    target="moto.ec2.models.route_tables:RouteBackend.create_route",
    parameters=(
        "self",
        "route_table_id",
        "destination_cidr_block",
        "destination_ipv6_cidr_block",
        "destination_prefix_list_id",
        "local",
        "gateway_id",
        "instance_id",
        "nat_gateway_id",
        "egress_only_igw_id",
        "transit_gateway_id",
        "interface_id",
        "vpc_peering_connection_id",
        "carrier_gateway_id",
        "vpc_endpoint_id",
    ),
    why="a route to an internet gateway that is not attached is refused",
)
CREATE_NAT_GATEWAY = Hook(
    target="moto.ec2.models.nat_gateways:NatGatewayBackend.create_nat_gateway",
    parameters=("self", "subnet_id", "allocation_id", "tags", "connectivity_type"),
    why="a public NAT gateway fails in a VPC without an internet gateway",
)
DELETE_SUBNET = Hook(
    target="moto.ec2.models.subnets:SubnetBackend.delete_subnet",
    parameters=("self", "subnet_id"),
    why="a subnet with a file system cannot be deleted",
)
