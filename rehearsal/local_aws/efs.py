"""EFS: moto's types, with the attributes, policies and in-place updates that they lack."""

import json
import uuid
from typing import Any

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.cloudformation.handlers import changed, register
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.moto_types import Attributes, Created, MotoType, Properties

# A change of any other property of a file system, or of any property of an access point, replaces it.
_FILE_SYSTEM_IN_PLACE = {
    "BackupPolicy",
    "FileSystemPolicy",
    "FileSystemTags",
    "LifecyclePolicies",
    "ProvisionedThroughputInMibps",
    "ThroughputMode",
}


def efs() -> Any:
    """Return moto's EFS state."""
    from moto.efs.models import efs_backends  # noqa: PLC0415

    return efs_backends[ACCOUNT][REGION]


def install() -> None:
    """Generate AWS's ids, and register the resource types."""
    hooks.replace("EFS_IDS", lambda _: _Ids)
    for of in (FileSystemType, MountTargetType, AccessPointType):
        name = f"AWS::EFS::{of.__name__.removesuffix('Type')}"
        register(name, of(name).handler())


class _Ids:
    """Random part of the ids fs-, fsmt- and fsap-."""

    @staticmethod
    def get_random_hex(length: int = 17) -> str:  # noqa: ARG004
        """Return 17 digits, regardless of the length that moto requests."""
        return uuid.uuid4().hex[:17]


class FileSystemType(MotoType):
    """AWS::EFS::FileSystem."""

    def create(self, logical_id: str, properties: Properties, stack_name: str) -> Created:
        """Create a file system, with its policy."""
        throughput = properties.get("ProvisionedThroughputInMibps")
        mode = properties.get("ThroughputMode", "bursting")
        if (mode == "provisioned") != (throughput is not None):
            raise ValueError("ProvisionedThroughputInMibps and ThroughputMode provisioned require each other")
        id_, _ = super().create(logical_id, properties, stack_name)
        self._configure(id_, properties)
        return id_, self.attributes(id_)

    def attributes(self, physical_id: str) -> Attributes:
        """Return the attributes for Fn::GetAtt."""
        return {"Arn": self.resource(physical_id).file_system_arn, "FileSystemId": physical_id}

    def update(
        self, physical_id: str, old: Properties, new: Properties, stack_name: str, logical_id: str
    ) -> Created:
        """Change it in place if EFS can."""
        if changed(old, new) - _FILE_SYSTEM_IN_PLACE:
            return self.create(logical_id, new, stack_name)
        self._configure(physical_id, new)
        return physical_id, self.attributes(physical_id)

    def _configure(self, id_: str, properties: Properties) -> None:
        system = self.resource(id_)
        system.throughput_mode = properties.get("ThroughputMode", "bursting")
        throughput = properties.get("ProvisionedThroughputInMibps")
        system.provisioned_throughput_in_mibps = float(throughput) if throughput is not None else None
        system.encrypted = str(system.encrypted).lower() == "true"
        system.lifecycle_policies = properties.get("LifecyclePolicies", [])
        system._backup = properties.get("BackupPolicy", {}).get("Status") == "ENABLED"
        policy = properties.get("FileSystemPolicy")
        system.file_system_policy = json.dumps(policy) if policy else None
        efs().tagging_service.tag_resource(id_, properties.get("FileSystemTags", []))


class MountTargetType(MotoType):
    """AWS::EFS::MountTarget."""

    def attributes(self, physical_id: str) -> Attributes:
        """Return the attributes for Fn::GetAtt."""
        return {"Id": physical_id, "IpAddress": self.resource(physical_id).ip_address}

    def update(
        self, physical_id: str, old: Properties, new: Properties, stack_name: str, logical_id: str
    ) -> Created:
        """Change its security groups in place; a zone has one target, so a replacement fails."""
        if changed(old, new) - {"SecurityGroups"}:
            return self.create(logical_id, new, stack_name)
        efs().modify_mount_target_security_groups(physical_id, new["SecurityGroups"])
        return physical_id, self.attributes(physical_id)


class AccessPointType(MotoType):
    """AWS::EFS::AccessPoint."""

    def physical_id(self, resource: Any, stack_name: str, logical_id: str) -> str:  # noqa: ARG002
        """Return its id, which moto does not give to CloudFormation."""
        return str(resource.access_point_id)

    def attributes(self, physical_id: str) -> Attributes:
        """Return the attributes for Fn::GetAtt."""
        return {"Arn": self.resource(physical_id).access_point_arn, "AccessPointId": physical_id}
