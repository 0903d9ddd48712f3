"""Hooks into moto, none of which is its public API; above each, what it is for."""

from rehearsal.local_aws.emulators.hooks import Hook

# Dry-run RunInstances must accept instance stores, and root volumes without a size.
BLOCK_DEVICES = Hook(
    "moto.ec2.responses.instances:InstanceResponse._validate_block_device_mapping(device_mapping)"
)
# DescribeFileSystems lacks lifecycle, VPC, interfaces and version.
FILE_SYSTEM = Hook("moto.fsx.models:FileSystem.to_dict(self)")
# AWS::FSx::FileSystem.
FILE_SYSTEMS = Hook(
    "moto.fsx.models:FSxBackend.create_file_system(self, client_request_token, file_system_type, "
    "storage_capacity, storage_type, subnet_ids, security_group_ids, tags, kms_key_id, "
    "windows_configuration, lustre_configuration, ontap_configuration, file_system_type_version, "
    "open_zfs_configuration)"
)
# The parameters of EC2 actions that we add.
EC2_PARAMETER = Hook("moto.ec2.responses:EC2Response._get_param(self, param_name, if_none)")
# It reads _backup, which a change of a template's BackupPolicy sets.
EFS_BACKUP = Hook("moto.efs.models:FileSystem.backup_policy")
# moto's ids of EFS have 8 digits; ParallelCluster's schema requires AWS's 17.
EFS_IDS = Hook("moto.efs.models:mock_random")
# moto's images have 15 GiB; ParallelCluster's have 35.
IMAGE_BLOCK_DEVICES = Hook("moto.ec2.models.amis:Ami.block_device_mappings")
# Its network interfaces and associations are deleted with it.
DELETE_FILE_SYSTEM = Hook(
    "moto.fsx.models:FSxBackend.delete_file_system(self, file_system_id, client_request_token, "
    "windows_configuration, lustre_configuration, open_zfs_configuration)"
)
# A route to an internet gateway that is not attached is refused.
CREATE_ROUTE = Hook(
    "moto.ec2.models.route_tables:RouteBackend.create_route(self, route_table_id, "
    "destination_cidr_block, destination_ipv6_cidr_block, destination_prefix_list_id, local, gateway_id, "
    "instance_id, nat_gateway_id, egress_only_igw_id, transit_gateway_id, interface_id, "
    "vpc_peering_connection_id, carrier_gateway_id, vpc_endpoint_id)"
)
# A public NAT gateway fails in a VPC without an internet gateway.
CREATE_NAT_GATEWAY = Hook(
    "moto.ec2.models.nat_gateways:NatGatewayBackend.create_nat_gateway(self, subnet_id, allocation_id, "
    "tags, connectivity_type)"
)
# A subnet with a file system cannot be deleted.
DELETE_SUBNET = Hook("moto.ec2.models.subnets:SubnetBackend.delete_subnet(self, subnet_id)")
