"""The local EC2 requires an attached internet gateway where AWS does."""

import functools
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from rehearsal.local_aws.ec2 import internet_gateways
from rehearsal.local_aws.emulators import hooks, moto_hooks

CIDR = "10.0.0.0/16"


@pytest.fixture
def ec2(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    changed = (moto_hooks.CREATE_ROUTE, moto_hooks.CREATE_NAT_GATEWAY)
    originals = [hooks.find(hook) for hook in changed]
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    with mock_aws():
        internet_gateways.install()
        yield boto3.client("ec2", "us-east-1")
    for hook, function in zip(changed, originals, strict=True):
        hooks.replace(hook, functools.partial(_instead, function))


def _instead(function: Any, _present: Any) -> Any:
    return function


@pytest.mark.slow
def test_a_route_is_refused_until_its_gateway_is_attached(ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock=CIDR)["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    route = {"RouteTableId": table, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway}
    with pytest.raises(ClientError, match=rf"InvalidParameterValue.*{table} and network gateway {gateway}"):
        ec2.create_route(**route)
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    assert ec2.create_route(**route)["Return"]


def test_a_gateway_of_another_network_is_refused(ec2: Any) -> None:
    vpc, other = (ec2.create_vpc(CidrBlock=CIDR)["Vpc"]["VpcId"] for _ in range(2))
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=other)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    with pytest.raises(ClientError, match="belong to different networks"):
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)


def test_a_public_nat_gateway_needs_an_internet_gateway_and_a_private_one_none(ec2: Any) -> None:
    vpc = ec2.create_vpc(CidrBlock=CIDR)["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    with pytest.raises(ClientError, match=rf"Gateway.NotAttached.*Network {vpc} has no Internet gateway"):
        ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)
    assert ec2.create_nat_gateway(SubnetId=subnet, ConnectivityType="private")["NatGateway"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    assert ec2.create_nat_gateway(SubnetId=subnet, AllocationId=address)["NatGateway"]
