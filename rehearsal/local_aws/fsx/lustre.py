"""FSx for Lustre: moto's file systems with AWS's ids, network interfaces, mount names and errors."""

import functools
import json
import uuid
from collections.abc import Callable, Collection
from typing import Any

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.cloudformation.handlers import changed, register, simple
from rehearsal.local_aws.emulators import hooks, moto_actions
from rehearsal.local_aws.emulators.moto_types import Created, Properties, ec2

# Any other change replaces the file system (CloudFormation's page of AWS::FSx::FileSystem), as do these
# keys of its LustreConfiguration, which UpdateFileSystem does not accept (FSx's API reference).
_IN_PLACE = {"StorageCapacity", "LustreConfiguration", "Tags"}
_LUSTRE_CREATE_ONLY = ("CopyTagsToBackups", "DeploymentType", "DriveCacheType", "EfaEnabled")
_OLD_MOUNT_NAME = "fsx"
"""Mount name of SCRATCH_1 file systems; all others have random ones."""
_PORT = 988
_REFUSED = (
    "The file system cannot be created because the default security group in the subnet provided or the "
    f"provided security groups do not permit Lustre LNET network traffic on port {_PORT}"
)
# FSx for Lustre guide, troubleshooting: "Cannot create an EFA-enabled file system".
_REFUSED_EFA = (
    "Insufficient security group permissions to create an EFA-enabled file system. Update security group to "
    "allow all internal inbound and outbound traffic."
)


def fsx() -> Any:
    """Return moto's FSx state."""
    from moto.fsx.models import fsx_backends  # noqa: PLC0415

    return fsx_backends[ACCOUNT][REGION]


def install() -> None:
    """Correct moto's file systems, and register the resource type."""
    from moto.fsx.responses import FSxResponse  # noqa: PLC0415

    hooks.replace("FILE_SYSTEM", _complete_description)
    hooks.replace("FILE_SYSTEMS", _complete)
    hooks.replace("DELETE_FILE_SYSTEM", _delete_interfaces)
    known = FSxResponse.describe_file_systems

    def describe_file_systems(self: Any) -> Any:
        for id_ in json.loads(self.body).get("FileSystemIds") or []:
            existing(id_)
        return known(self)

    moto_actions.add("fsx", describe_file_systems)
    register("AWS::FSx::FileSystem", simple(_create, _delete, _update))


def existing(id_: str) -> Any:
    """Return a file system by its id. Raises FSx's FileSystemNotFound."""
    if id_ not in fsx().file_systems:
        raise moto_actions.json_error("FileSystemNotFound", f"File system '{id_}' does not exist.")
    return fsx().file_systems[id_]


def _complete_description(original: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    @functools.wraps(original)
    def to_dict(self: Any) -> dict[str, Any]:
        return original(self) | {
            "Lifecycle": "AVAILABLE",
            "OwnerId": ACCOUNT,
            "VpcId": self.vpc_id,
            "NetworkInterfaceIds": self.network_interface_ids,
            "FileSystemTypeVersion": self.file_system_type_version or "2.15",
        }

    return to_dict


def _complete(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def create_file_system(self: Any, **wanted: Any) -> Any:
        lustre = {"DeploymentType": "SCRATCH_1"} | (wanted["lustre_configuration"] or {})
        if lustre.get("EfaEnabled") and not lustre.get("MetadataConfiguration"):
            words = "EFA is only supported for PERSISTENT_2 filesystems with metadata configuration"
            raise moto_actions.json_error("BadRequest", words)
        check_groups(wanted["security_group_ids"] or (), efa=bool(lustre.get("EfaEnabled")))
        old = lustre["DeploymentType"] == "SCRATCH_1"
        lustre["MountName"] = _OLD_MOUNT_NAME if old else uuid.uuid4().hex[:8]
        system = original(self, **{**wanted, "lustre_configuration": lustre})
        _give_real_id(self, system)
        interfaces = [
            ec2().create_network_interface(
                subnet=subnet, private_ip_address=None, group_ids=wanted["security_group_ids"] or None
            )
            for subnet in wanted["subnet_ids"]
        ]
        system.vpc_id = interfaces[0].subnet.vpc_id
        system.network_interface_ids = [interface.id for interface in interfaces]
        system.file_system_type_version = wanted["file_system_type_version"]
        return system

    return create_file_system


def _give_real_id(backend: Any, system: Any) -> None:
    """Replace moto's id, which is shorter than AWS's pattern in ParallelCluster's schema."""
    old, new = system.file_system_id, f"fs-{uuid.uuid4().hex[:17]}"
    tags = backend.list_tags_for_resource(system.resource_arn)
    backend.file_systems[new] = backend.file_systems.pop(old)
    system.file_system_id = new
    system.resource_arn = system.resource_arn.replace(old, new)
    system.dns_name = system.dns_name.replace(old, new)
    backend.tagger.tag_resource(system.resource_arn, tags)


def _delete_interfaces(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def delete_file_system(self: Any, file_system_id: str, *rest: Any, **more: Any) -> Any:
        for interface in existing(file_system_id).network_interface_ids:
            ec2().enis.pop(interface, None)
        return original(self, file_system_id, *rest, **more)

    return delete_file_system


def _create(_logical_id: str, properties: Properties, _stack: str) -> Created:
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
        lustre_configuration=properties.get("LustreConfiguration"),
        ontap_configuration=None,
        file_system_type_version=properties.get("FileSystemTypeVersion"),
        open_zfs_configuration=None,
    )
    return _created(system)


def _created(system: Any) -> Created:
    return system.file_system_id, {
        "LustreMountName": system.lustre_configuration["MountName"],
        "ResourceARN": system.resource_arn,
        "DNSName": system.dns_name,
    }


def _update(id_: str, old: Properties, new: Properties, stack: str, logical_id: str) -> Created:
    was, wanted = old.get("LustreConfiguration") or {}, new.get("LustreConfiguration") or {}
    if changed(old, new) - _IN_PLACE or any(was.get(key) != wanted.get(key) for key in _LUSTRE_CREATE_ONLY):
        return _create(logical_id, new, stack)
    system = existing(id_)
    _refuse_what_fsx_cannot_change(system, new)
    system.storage_capacity = int(new.get("StorageCapacity", system.storage_capacity))
    system.lustre_configuration |= wanted
    fsx().tagger.tag_resource(system.resource_arn, new.get("Tags", []))
    return _created(system)


def _refuse_what_fsx_cannot_change(system: Any, new: Properties) -> None:
    """Refuse as UpdateFileSystem does (FSx for Lustre guide, "Managing storage capacity")."""
    wanted = new.get("LustreConfiguration") or {}
    if int(new.get("StorageCapacity", system.storage_capacity)) < system.storage_capacity:
        raise ValueError("Storage capacity can only be increased")
    kept, throughput = system.lustre_configuration, "PerUnitStorageThroughput"
    if kept.get("EfaEnabled") and kept.get(throughput) != wanted.get(throughput):
        raise ValueError("The throughput of an EFA-enabled file system cannot be changed")


def _delete(id_: str, _: Properties) -> None:
    if id_ in fsx().file_systems:
        fsx().delete_file_system(id_, "", None, None, None)


def check_groups(group_ids: Collection[str], *, efa: bool) -> None:
    """Check the groups' rules, as CreateFileSystem does at once, without waiting for them.

    Args:
        group_ids: security groups of the new file system.
        efa: True for a file system with EFA, whose traffic no rule about addresses permits.

    Raises:
        FSx's InvalidNetworkSettings: the groups have no inbound or no outbound rule for Lustre's port; with
            efa, for all traffic among the groups.
    """
    groups = [ec2().get_security_group_from_id(each) for each in group_ids]
    permits, words = (_permits_all, _REFUSED_EFA) if efa else (_permits, _REFUSED)
    for direction in ("ingress_rules", "egress_rules"):
        rules = [rule for group in groups for rule in getattr(group, direction)]
        if groups and not any(permits(rule, group_ids) for rule in rules):
            raise moto_actions.json_error("InvalidNetworkSettings", words)


def _permits(rule: Any, group_ids: Collection[str]) -> bool:
    """Return True for a rule about Lustre's port, between these groups or with addresses."""
    about_port = rule.ip_protocol == "-1" or (
        rule.ip_protocol == "tcp" and rule.from_port <= _PORT <= rule.to_port
    )
    return about_port and bool(rule.ip_range or rule.source_group.get("GroupId") in group_ids)


def _permits_all(rule: Any, group_ids: Collection[str]) -> bool:
    """Return True for a rule about all traffic between these groups."""
    return rule.ip_protocol == "-1" and rule.source_group.get("GroupId") in group_ids
