"""The local EC2 requires attached internet gateways, and keeps subnets in use, as EC2 does."""

from types import SimpleNamespace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from rehearsal.local_aws.address import REGION
from rehearsal.local_aws.ec2 import network
from rehearsal.local_aws.emulators import moto_hooks
from tests.unit.rehearsal.local_aws.conftest import Corrected

CIDR = "10.0.0.0/16"
CHANGED = (moto_hooks.CREATE_ROUTE, moto_hooks.CREATE_NAT_GATEWAY, moto_hooks.DELETE_SUBNET)


@pytest.fixture
def ec2(corrected: Corrected) -> Any:
    return corrected(network.install, *CHANGED)("ec2")


def test_route_needs_its_gateway_attached(ec2: Any) -> None:
    vpc, other = (ec2.create_vpc(CidrBlock=CIDR)["Vpc"]["VpcId"] for _ in range(2))
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway}
    with pytest.raises(ClientError, match=rf"InvalidParameterValue.*{table} and network gateway {gateway}"):
        ec2.create_route(**route)
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=other)
    with pytest.raises(ClientError, match="belong to different networks"):
        ec2.create_route(**route)
    ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=other)
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    assert ec2.create_route(**route)["Return"]


def test_public_nat_gateway_needs_an_internet_gateway(ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock=CIDR)["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    with pytest.raises(ClientError, match=rf"Gateway.NotAttached.*Network {vpc} has no Internet gateway"):
        ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)
    assert ec2.create_nat_gateway(SubnetId=subnet, ConnectivityType="private")["NatGateway"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    assert ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]


def test_file_systems_keep_their_subnet(ec2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    efs = boto3.client("efs", REGION)
    vpc = ec2.create_vpc(CidrBlock=CIDR)["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
    system = efs.create_file_system(CreationToken="homes")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=system, SubnetId=subnet)["MountTargetId"]
    with pytest.raises(ClientError, match=rf"DependencyViolation.*{subnet}"):
        ec2.delete_subnet(SubnetId=subnet)
    efs.delete_mount_target(MountTargetId=target)

    interface = ec2.create_network_interface(SubnetId=subnet)["NetworkInterface"]["NetworkInterfaceId"]
    lustre = {"fs-1": SimpleNamespace(network_interface_ids=[interface])}
    monkeypatch.setattr(network, "fsx", lambda: SimpleNamespace(file_systems=lustre))
    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_subnet(SubnetId=subnet)
    lustre.clear()
    ec2.delete_subnet(SubnetId=subnet)
