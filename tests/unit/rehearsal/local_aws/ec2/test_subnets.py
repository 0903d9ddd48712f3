"""The local EC2 keeps a subnet in which a file system is, as EC2 does."""

from types import SimpleNamespace

import pytest
from botocore.exceptions import ClientError

from rehearsal.local_aws.ec2 import subnets
from rehearsal.local_aws.emulators import moto_hooks
from tests.unit.rehearsal.local_aws.conftest import Corrected


def test_file_systems_keep_their_subnet(corrected: Corrected, monkeypatch: pytest.MonkeyPatch) -> None:
    client = corrected(subnets.install, moto_hooks.DELETE_SUBNET)
    ec2, efs = client("ec2"), client("efs")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
    system = efs.create_file_system(CreationToken="homes")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=system, SubnetId=subnet)["MountTargetId"]
    with pytest.raises(ClientError, match=rf"DependencyViolation.*{subnet}"):
        ec2.delete_subnet(SubnetId=subnet)
    efs.delete_mount_target(MountTargetId=target)

    interface = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    lustre = {"fs-1": SimpleNamespace(network_interface_ids=[interface])}
    monkeypatch.setattr(subnets, "fsx", lambda: SimpleNamespace(file_systems=lustre))
    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_subnet(SubnetId=subnet)
    lustre.clear()
    ec2.delete_subnet(SubnetId=subnet)
