"""The resource types of EC2, FSx and EFS for ministack's engine: moto's, and those that moto lacks."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from rehearsal.local_aws import hooks
from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.moto_services import PLACEMENT_GROUPS
from rehearsal.local_aws.moto_types import (
    Attributes,
    Created,
    Handler,
    InstanceType,
    MotoType,
    Properties,
    ec2,
)

_GROUPS_WITH_EGRESS: set[str] = set()

Create = Callable[[str, Properties, str], Created]
Delete = Callable[[str, Properties], object]


def fsx() -> Any:
    """moto's FSx state."""
    from moto.fsx.models import fsx_backends  # noqa: PLC0415

    return fsx_backends[ACCOUNT][REGION]


def install() -> None:
    """Register every type that moto models, and those that it does not."""
    handlers: dict[str, Handler] = hooks.find(hooks.RESOURCE_HANDLERS)
    for name in hooks.find(hooks.MOTO_MODELS)():
        if name.startswith(("AWS::EC2::", "AWS::EFS::")):
            handlers[name] = MotoType(name).handler()
    handlers["AWS::EC2::Instance"] = InstanceType().handler()
    handlers["AWS::EC2::KeyPair"] = _simple(_create_key_pair, lambda id_, _: ec2().delete_key_pair(id_))
    handlers["AWS::EC2::PlacementGroup"] = _simple(
        _create_placement_group, lambda id_, _: PLACEMENT_GROUPS.pop(id_, None)
    )
    handlers["AWS::EC2::SecurityGroupEgress"] = _simple(_create_egress, lambda _id, _: None)
    handlers["AWS::FSx::FileSystem"] = _simple(_create_file_system, _delete_file_system)
    handlers["AWS::CloudWatch::CompositeAlarm"] = _simple(_create_composite_alarm, lambda _id, _: None)


def _simple(create: Create, delete: Delete) -> Handler:
    """Wrap a type that is never updated in place here: its attributes are kept from its creation."""
    attributes: dict[str, Attributes] = {}

    def remember(logical_id: str, properties: Properties, stack_name: str) -> Created:
        physical_id, attributes[physical_id] = create(logical_id, properties, stack_name)
        return physical_id, attributes[physical_id]

    def keep(physical_id: str, _old: Properties, _new: Properties, _stack: str) -> Created:
        return physical_id, attributes.get(physical_id, {})

    return {"create": remember, "update": keep, "delete": delete}


def _create_key_pair(_logical_id: str, properties: Properties, _stack: str) -> Created:
    name, material = properties["KeyName"], properties.get("PublicKeyMaterial")
    if material:
        pair = ec2().import_key_pair(name, material, {})
    else:
        pair = ec2().create_key_pair(name, properties.get("KeyType", "rsa"), {})
    return name, {"KeyPairId": pair.id}


def _create_placement_group(logical_id: str, properties: Properties, stack: str) -> Created:
    name = properties.get("GroupName") or f"{stack}-{logical_id}-{uuid.uuid4().hex[:12]}"
    PLACEMENT_GROUPS[name] = properties.get("Strategy", "cluster")
    return name, {"GroupName": name}


def _create_egress(_logical_id: str, properties: Properties, _stack: str) -> Created:
    group = properties.get("DestinationSecurityGroupId")
    _take_default_egress_away(properties["GroupId"])
    ec2().authorize_security_group_egress(
        properties["GroupId"],
        str(properties["IpProtocol"]),
        properties.get("FromPort"),
        properties.get("ToPort"),
        [properties["CidrIp"]] if "CidrIp" in properties else [],
        source_groups=[{"GroupId": group}] if group else [],
    )
    return f"sgr-{uuid.uuid4().hex[:17]}", {}


def _take_default_egress_away(group_id: str) -> None:
    """As on AWS: a group's first egress resource removes the rule that allows everything."""
    if group_id not in _GROUPS_WITH_EGRESS:
        _GROUPS_WITH_EGRESS.add(group_id)
        group = ec2().get_security_group_from_id(group_id)
        group.egress_rules = [rule for rule in group.egress_rules if rule.ip_protocol != "-1"]


def _create_composite_alarm(logical_id: str, properties: Properties, stack: str) -> Created:
    name = properties.get("AlarmName") or f"{stack}-{logical_id}"
    return name, {"Arn": f"arn:aws:cloudwatch:{REGION}:{ACCOUNT}:alarm:{name}"}


def _create_file_system(_logical_id: str, properties: Properties, _stack: str) -> Created:
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
