"""CloudFormation resource types of EC2, FSx and EFS for ministack's engine, on moto's state.

A handler is what the engine expects: create(logical_id, properties, stack_name) -> (physical id,
attributes), update(physical_id, old, new, stack_name[, logical_id]), delete(physical_id, properties).
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable
from typing import Any

from rehearsal.local_aws import hooks
from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.moto_services import PLACEMENT_GROUPS

Properties = dict[str, Any]
Attributes = dict[str, Any]
Handler = dict[str, Any]
Create = Callable[[str, Properties, str], tuple[str, Attributes]]
Delete = Callable[[str, Properties], object]

# Attributes that Fn::GetAtt may ask for, over all the types.
_ATTRIBUTES = frozenset(
    """
    AccessPointId AllocationId Arn AvailabilityZone CidrBlock CidrBlockAssociations DefaultNetworkAcl
    DefaultSecurityGroup DefaultVersionNumber DnsEntries FileSystemId GroupId Id InstanceId InternetGatewayId
    IpAddress LatestVersionNumber LaunchTemplateId NatGatewayId NetworkAclAssociationId NetworkInterfaceIds
    PrimaryPrivateIpAddress PrivateDnsName PrivateIp PublicDnsName PublicIp RouteTableId SubnetId VolumeId
    VpcEndpointId VpcId
    """.split()
)

# A change of these alone replaces nothing.
_IN_PLACE = {"Tags", "TagSpecifications"}


def ec2() -> Any:
    """moto's EC2 state."""
    from moto.ec2.models import ec2_backends  # noqa: PLC0415

    return ec2_backends[ACCOUNT][REGION]


def fsx() -> Any:
    """moto's FSx state."""
    from moto.fsx.models import fsx_backends  # noqa: PLC0415

    return fsx_backends[ACCOUNT][REGION]


def install() -> None:
    """Register every type that moto models, and those that it does not."""
    handlers: dict[str, Handler] = hooks.find(hooks.RESOURCE_HANDLERS)
    for name in hooks.find(hooks.MOTO_MODELS)():
        if name.startswith(("AWS::EC2::", "AWS::EFS::")):
            handlers[name] = _MotoType(name).handler()
    handlers["AWS::EC2::Instance"] = _instance(handlers["AWS::EC2::Instance"])
    handlers["AWS::EC2::KeyPair"] = _simple(_create_key_pair, lambda id_, _: ec2().delete_key_pair(id_))
    handlers["AWS::EC2::PlacementGroup"] = _simple(
        _create_placement_group, lambda id_, _: PLACEMENT_GROUPS.pop(id_, None)
    )
    handlers["AWS::EC2::SecurityGroupEgress"] = _simple(_create_egress, lambda _id, _: None)
    handlers["AWS::FSx::FileSystem"] = _simple(_create_file_system, _delete_file_system)
    handlers["AWS::CloudWatch::CompositeAlarm"] = _simple(_create_composite_alarm, lambda _id, _: None)


class _MotoType:
    """One type that moto models, as a handler of the engine."""

    def __init__(self, name: str) -> None:
        self._name, self._model = name, hooks.find(hooks.MOTO_MODELS)()[name]
        self._resources: dict[str, Any] = {}

    def handler(self) -> Handler:
        return {
            "create": self._create,
            "update": self._update,
            "update_with_logical_id": True,
            "delete": self._delete,
        }

    def _create(self, logical_id: str, properties: Properties, stack_name: str) -> tuple[str, Attributes]:
        property_name = self._model.cloudformation_name_type()
        name = properties.get(property_name) if property_name else None
        resource = self._model.create_from_cloudformation_json(
            name or hooks.find(hooks.MOTO_NAMES)(self._name, stack_name, logical_id),
            {"Type": self._name, "Properties": properties},
            ACCOUNT,
            REGION,
            LogicalId=logical_id,
            StackId=stack_name,
            ResourceType=self._name,
        )
        physical_id = getattr(resource, "physical_resource_id", None) or f"{stack_name}-{logical_id}"
        self._resources[physical_id] = resource
        self._tag(physical_id, properties)
        return physical_id, self._attributes(physical_id)

    def _tag(self, physical_id: str, properties: Properties) -> None:
        tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", []) if isinstance(tag, dict)}
        if tags and self._name.startswith("AWS::EC2::"):
            with contextlib.suppress(Exception):  # some EC2 types cannot be tagged in moto
                ec2().create_tags([physical_id], tags)

    def _attributes(self, physical_id: str) -> Attributes:
        found: Attributes = {}
        for attribute in _ATTRIBUTES:
            with contextlib.suppress(Exception):  # each type knows only its own
                value = self._resources[physical_id].get_cfn_attribute(attribute)
                if value is not None:
                    found[attribute] = value if isinstance(value, str | list | dict) else str(value)
        if self._name == "AWS::EC2::LaunchTemplate":
            found = {
                "LaunchTemplateId": physical_id,
                "LatestVersionNumber": "1",
                "DefaultVersionNumber": "1",
            } | found
        return found

    def _update(
        self, physical_id: str, old: Properties, new: Properties, stack_name: str, logical_id: str
    ) -> tuple[str, Attributes]:
        if self._name == "AWS::EC2::LaunchTemplate":
            version = self._resources[physical_id].create_version(new["LaunchTemplateData"], "")
            return physical_id, self._attributes(physical_id) | {"LatestVersionNumber": str(version.number)}
        changed = {key for key in {*old, *new} if old.get(key) != new.get(key)}
        if changed <= _IN_PLACE:
            return physical_id, self._attributes(physical_id)
        return self._create(logical_id, new, stack_name)

    def _delete(self, physical_id: str, properties: Properties) -> None:
        resource = self._resources.pop(physical_id, None)
        if delete := _DELETERS.get(self._name):
            with contextlib.suppress(KeyError):  # gone already
                delete(physical_id, properties)
            return
        try:
            resource.delete(ACCOUNT, REGION)
        except (TypeError, AttributeError):
            with contextlib.suppress(NotImplementedError):
                self._model.delete_from_cloudformation_json(
                    physical_id, {"Type": self._name, "Properties": properties}, ACCOUNT, REGION
                )


def _disassociate(_id: str, properties: Properties) -> None:
    table = ec2().route_tables.get(properties["RouteTableId"])
    for association, subnet in list(table._associations.items() if table else []):
        if subnet == properties["SubnetId"]:
            ec2().disassociate_route_table(association)


def _release(id_: str, _: Properties) -> None:
    key = "allocation_id" if id_.startswith("eipalloc") else "address"
    ec2().release_address(**{key: id_})


# Types whose moto model cannot be deleted through CloudFormation.
_DELETERS: dict[str, Callable[[str, Properties], Any]] = {
    "AWS::EC2::EIP": _release,
    "AWS::EC2::InternetGateway": lambda i, _: ec2().delete_internet_gateway(i),
    "AWS::EC2::NatGateway": lambda i, _: ec2().delete_nat_gateway(i),
    "AWS::EC2::Route": lambda _, p: ec2().delete_route(p["RouteTableId"], p.get("DestinationCidrBlock")),
    "AWS::EC2::RouteTable": lambda i, _: ec2().delete_route_table(i),
    "AWS::EC2::SubnetRouteTableAssociation": _disassociate,
    "AWS::EC2::VPCGatewayAttachment": lambda _, p: ec2().detach_internet_gateway(
        p["InternetGatewayId"], p["VpcId"]
    ),
    "AWS::EC2::NetworkInterface": lambda i, _: ec2().enis.pop(i, None),
    "AWS::EC2::Volume": lambda i, _: ec2().delete_volume(i),
    "AWS::EC2::VPCEndpoint": lambda i, _: ec2().delete_vpc_endpoints([i]),
    "AWS::EC2::SecurityGroupIngress": lambda _, __: None,
    "AWS::EC2::Instance": lambda i, _: ec2().terminate_instances([i]),
}


def _simple(create: Create, delete: Delete) -> Handler:
    """Wrap a type that is never updated in place here: its attributes are kept from its creation."""
    attributes: dict[str, Attributes] = {}

    def remember(logical_id: str, properties: Properties, stack_name: str) -> tuple[str, Attributes]:
        physical_id, attributes[physical_id] = create(logical_id, properties, stack_name)
        return physical_id, attributes[physical_id]

    def keep(physical_id: str, _old: Properties, _new: Properties, _stack: str) -> tuple[str, Attributes]:
        return physical_id, attributes.get(physical_id, {})

    return {"create": remember, "update": keep, "delete": delete}


def _instance(base: Handler) -> Handler:
    """moto's instance takes neither a launch template nor a network interface that exists."""

    def create(logical_id: str, properties: Properties, stack_name: str) -> tuple[str, Attributes]:
        launch = properties.get("LaunchTemplate") or {}
        if launch:
            by_id = launch.get("LaunchTemplateId")
            template = (
                ec2().get_launch_template(by_id)
                if by_id
                else ec2().get_launch_template_by_name(launch["LaunchTemplateName"])
            )
            properties = {**template.get_version(launch.get("Version", "$Latest")).data, **properties}
        interface = (properties.get("NetworkInterfaces") or [{}])[0]
        existing = ec2().enis.get(interface.get("NetworkInterfaceId"))
        subnet = existing.subnet.id if existing else interface.get("SubnetId") or properties.get("SubnetId")
        dropped = {"IamInstanceProfile", "BlockDeviceMappings", "NetworkInterfaces", "LaunchTemplate"}
        kept = {key: value for key, value in properties.items() if key not in dropped}
        created: tuple[str, Attributes] = base["create"](logical_id, kept | {"SubnetId": subnet}, stack_name)
        return created

    def update(
        id_: str, _old: Properties, _new: Properties, _stack: str, _logical: str
    ) -> tuple[str, Attributes]:
        return id_, {}

    return {**base, "create": create, "update": update}


def _create_key_pair(_logical_id: str, properties: Properties, _stack: str) -> tuple[str, Attributes]:
    name, material = properties["KeyName"], properties.get("PublicKeyMaterial")
    if material:
        pair = ec2().import_key_pair(name, material, {})
    else:
        pair = ec2().create_key_pair(name, properties.get("KeyType", "rsa"), {})
    return name, {"KeyPairId": pair.id}


def _create_placement_group(logical_id: str, properties: Properties, stack: str) -> tuple[str, Attributes]:
    name = properties.get("GroupName") or f"{stack}-{logical_id}-{uuid.uuid4().hex[:12]}"
    PLACEMENT_GROUPS[name] = properties.get("Strategy", "cluster")
    return name, {"GroupName": name}


def _create_egress(_logical_id: str, properties: Properties, _stack: str) -> tuple[str, Attributes]:
    group = properties.get("DestinationSecurityGroupId")
    ec2().authorize_security_group_egress(
        properties["GroupId"],
        str(properties["IpProtocol"]),
        properties.get("FromPort"),
        properties.get("ToPort"),
        [properties["CidrIp"]] if "CidrIp" in properties else [],
        source_groups=[{"GroupId": group}] if group else [],
    )
    return f"sgr-{uuid.uuid4().hex[:17]}", {}


def _create_composite_alarm(logical_id: str, properties: Properties, stack: str) -> tuple[str, Attributes]:
    name = properties.get("AlarmName") or f"{stack}-{logical_id}"
    return name, {"Arn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{name}"}


def _create_file_system(_logical_id: str, properties: Properties, _stack: str) -> tuple[str, Attributes]:
    subnet = properties["SubnetIds"][0]
    system = fsx().create_file_system(
        client_request_token="",
        file_system_type=properties["FileSystemType"],
        storage_capacity=int(properties.get("StorageCapacity", 1200)),
        storage_type=properties.get("StorageType", "SSD"),
        subnet_ids=properties["SubnetIds"],
        security_group_ids=properties.get("SecurityGroupIds", []),
        tags=properties.get("Tags", []),
        kms_key_id=properties.get("KmsKeyId"),
        windows_configuration=None,
        lustre_configuration={"MountName": "fsx"} | (properties.get("LustreConfiguration") or {}),
        ontap_configuration=None,
        file_system_type_version=properties.get("FileSystemTypeVersion"),
        open_zfs_configuration=None,
    )
    _give_real_id(system)
    interface = ec2().create_network_interface(
        subnet=subnet, private_ip_address=None, group_ids=properties.get("SecurityGroupIds") or None
    )
    system.vpc_id = ec2().get_subnet(subnet).vpc_id
    system.network_interface_ids = [interface.id]
    system.file_system_type_version = properties.get("FileSystemTypeVersion")
    attributes = {"LustreMountName": "fsx", "ResourceARN": system.resource_arn, "DNSName": system.dns_name}
    return system.file_system_id, attributes


def _give_real_id(system: Any) -> None:
    """moto's ids are shorter than AWS's pattern, which ParallelCluster's schema checks."""
    old, new = system.file_system_id, f"fs-{uuid.uuid4().hex[:17]}"
    fsx().file_systems[new] = fsx().file_systems.pop(old)
    system.file_system_id = new
    system.resource_arn = system.resource_arn.replace(old, new)
    system.dns_name = system.dns_name.replace(old, new)


def _delete_file_system(id_: str, _: Properties) -> None:
    system = fsx().file_systems.pop(id_, None)
    for interface in getattr(system, "network_interface_ids", []):
        ec2().enis.pop(interface, None)
