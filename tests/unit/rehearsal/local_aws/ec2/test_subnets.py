"""The local EC2 keeps a subnet in which a file system is, as EC2 does."""

import functools
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from rehearsal.local_aws.address import ACCOUNT, REGION
from rehearsal.local_aws.ec2 import subnets
from rehearsal.local_aws.emulators import hooks, moto_hooks


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("MOTO_ACCOUNT_ID", ACCOUNT)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    original = hooks.find(moto_hooks.DELETE_SUBNET)
    with mock_aws():
        subnets.install()
        yield functools.partial(boto3.client, region_name=REGION)
    hooks.replace(moto_hooks.DELETE_SUBNET, lambda _present: original)


@pytest.fixture
def subnet(client: Any) -> str:
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return str(ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"])


def test_a_mount_target_keeps_its_subnet(client: Any, subnet: str) -> None:
    ec2, efs = client("ec2"), client("efs")
    system = efs.create_file_system(CreationToken="homes")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=system, SubnetId=subnet)["MountTargetId"]
    with pytest.raises(ClientError, match=rf"DependencyViolation.*{subnet}"):
        ec2.delete_subnet(SubnetId=subnet)
    efs.delete_mount_target(MountTargetId=target)
    ec2.delete_subnet(SubnetId=subnet)


def test_a_lustre_file_system_keeps_its_subnet(
    client: Any, subnet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ec2 = client("ec2")
    interface = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    systems = {"fs-1": SimpleNamespace(network_interface_ids=[interface])}
    monkeypatch.setattr(subnets, "fsx", lambda: SimpleNamespace(file_systems=systems))
    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_subnet(SubnetId=subnet)
    systems.clear()
    ec2.delete_subnet(SubnetId=subnet)
