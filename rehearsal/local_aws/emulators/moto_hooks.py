"""Hooks into moto, none of which is its public API."""

from rehearsal.local_aws.emulators.hook import Hook

MODELS = Hook(
    target="moto.cloudformation.parsing:get_model_map",
    parameters=(),
    why="moto's CloudFormation resource types",
)
NAMES = Hook(
    target="moto.cloudformation.parsing:generate_resource_name",
    parameters=("resource_type", "stack_name", "logical_id"),
    why="names of resources whose template gives none",
)
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
ACTION_RESULT = Hook(
    target="moto.core.responses:ActionResult",
    parameters=("result",),
    why="the answer of an action that we add",
)
EC2_ERROR = Hook(
    target="moto.ec2.exceptions:EC2ClientError",
    parameters=("args", "kwargs"),
    why="the errors of EC2 actions that we add",
)
EC2_ACTIONS = Hook(
    target="moto.ec2.responses:EC2Response",
    parameters=(),
    why="moto lacks placement groups and capacity reservations, and its RegisterImage drops most parameters",
)
EC2_PARAMETER = Hook(
    target="moto.ec2.responses:EC2Response._get_param",
    parameters=("self", "param_name", "if_none"),
    why="the parameters of EC2 actions that we add",
)
EC2_FILTERS = Hook(
    target="moto.ec2.responses:EC2Response._filters_from_querystring",
    parameters=("self",),
    why="the filters of EC2 actions that we add",
)
ID_PREFIXES = Hook(
    target="moto.ec2.utils:EC2_RESOURCE_TO_PREFIX",
    parameters=None,
    why="CreateTags refuses ids of unknown types",
)
ID_TYPES = Hook(
    target="moto.ec2.utils:EC2_PREFIX_TO_RESOURCE", parameters=None, why="DescribeTags returns an id's type"
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
IMAGE = Hook(
    target="moto.ec2.models.amis:Ami",
    parameters=None,
    why="DescribeImages lacks EnaSupport, which nodes need",
)
JSON_ERROR = Hook(
    target="moto.core.exceptions:JsonRESTError",
    parameters=("error_type", "message", "_", "kwargs"),
    why="the errors of actions of FSx and Service Quotas that we add",
)
FSX_ACTIONS = Hook(
    target="moto.fsx.responses:FSxResponse",
    parameters=(),
    why="moto lacks data repository associations; unknown file systems are an error on AWS",
)
QUOTA_ACTIONS = Hook(
    target="moto.servicequotas.responses:ServiceQuotasResponse",
    parameters=(),
    why="moto lacks quotas of services other than VPC, and increases",
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
