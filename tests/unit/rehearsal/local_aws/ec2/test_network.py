"""The local EC2 sells Capacity Blocks by the clock, requires attached gateways, and keeps subnets in use."""

import datetime
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

TYPE = "p5.48xlarge"


def test_a_block_has_instances_in_its_time(client: Callable[[str], Any]) -> None:
    ec2, days = client("ec2"), datetime.timedelta(days=3)
    states = []
    for when in ({}, {"StartDateRange": datetime.datetime.now(datetime.UTC) + days}):
        wanted = {"InstanceType": TYPE, "InstanceCount": 2, "CapacityDurationHours": 24, **when}
        offer = ec2.describe_capacity_block_offerings(**wanted)["CapacityBlockOfferings"][0]
        made = ec2.purchase_capacity_block(
            CapacityBlockOfferingId=offer["CapacityBlockOfferingId"], InstancePlatform="Linux/UNIX"
        )["CapacityReservation"]
        states.append((made["State"], made["TotalInstanceCount"]))
    assert states == [("active", 2), ("scheduled", 0)]


CIDR = "10.0.0.0/16"


@pytest.fixture
def ec2(client: Callable[[str], Any]) -> Any:
    return client("ec2")


def test_routes_and_nat_need_an_attached_gateway(ec2: Any) -> None:
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
    vpc = ec2.create_vpc(CidrBlock=CIDR)["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    with pytest.raises(ClientError, match=rf"Gateway.NotAttached.*Network {vpc} has no Internet gateway"):
        ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)
    assert ec2.create_nat_gateway(SubnetId=subnet, ConnectivityType="private")["NatGateway"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    assert ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]


def test_file_systems_keep_their_subnet(client: Callable[[str], Any]) -> None:
    ec2, efs, fsx = (client(name) for name in ("ec2", "efs", "fsx"))
    vpc = ec2.create_vpc(CidrBlock=CIDR)["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
    system = efs.create_file_system(CreationToken="homes")["FileSystemId"]
    target = efs.create_mount_target(FileSystemId=system, SubnetId=subnet)["MountTargetId"]
    with pytest.raises(ClientError, match=rf"DependencyViolation.*{subnet}"):
        ec2.delete_subnet(SubnetId=subnet)
    efs.delete_mount_target(MountTargetId=target)

    made = fsx.create_file_system(FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=[subnet])
    with pytest.raises(ClientError, match="DependencyViolation"):
        ec2.delete_subnet(SubnetId=subnet)
    fsx.delete_file_system(FileSystemId=made["FileSystem"]["FileSystemId"])
    ec2.delete_subnet(SubnetId=subnet)
