"""The local EC2 requires an attached internet gateway where AWS does."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.local_aws.ec2 import internet_gateways
from rehearsal.local_aws.emulators import moto_hooks
from tests.unit.rehearsal.local_aws.conftest import Corrected

CIDR = "10.0.0.0/16"


@pytest.fixture
def ec2(corrected: Corrected) -> Any:
    changed = (moto_hooks.CREATE_ROUTE, moto_hooks.CREATE_NAT_GATEWAY)
    return corrected(internet_gateways.install, *changed)("ec2")


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
