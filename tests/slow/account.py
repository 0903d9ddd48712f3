"""An account of the local AWS as a person has it: clients, a network made by hand, stacks."""

import json
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rehearsal.account import Reader

_POLL_S = 0.2
_STACK_TIMEOUT_S = 60


@dataclass(frozen=True, kw_only=True)
class Network:
    """A VPC made by plain API calls, as a person brings one: a public and a private subnet in one zone."""

    vpc: str
    public: str
    private: str
    nodes: str
    """Security group, open to itself both ways, as EFA needs it."""

    def config(self) -> dict[str, Any]:
        """Return a small cluster config."""
        of_head = {"SubnetId": self.public, "AdditionalSecurityGroups": [self.nodes]}
        of_queue = {"SubnetIds": [self.private], "AdditionalSecurityGroups": [self.nodes]}
        resource = {"Name": "cpu", "InstanceType": "m6i.xlarge", "MinCount": 0, "MaxCount": 2}
        queue = {"Name": "cpu", "Networking": of_queue, "ComputeResources": [resource]}
        return {
            "Region": "us-east-1",
            "Image": {"Os": "ubuntu2404"},
            "HeadNode": {"InstanceType": "m6i.xlarge", "Networking": of_head},
            "Scheduling": {"Scheduler": "slurm", "SlurmQueues": [queue]},
        }


@dataclass(frozen=True)
class Account(Reader):
    """The actions of a person with the account's credentials."""

    def deploy(self, name: str, template: dict[str, Any]) -> dict[str, str]:
        """Create or update a stack; its outputs. Raises AssertionError with the first reason."""
        cloudformation = self.client("cloudformation")
        action = cloudformation.update_stack if self.stack(name) else cloudformation.create_stack
        action(StackName=name, TemplateBody=json.dumps(template))
        status = self.wait(name)
        events = [each.get("ResourceStatusReason") for each in self.events(name)]  # the stack's own, too
        assert status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"), f"{status}: {events}"
        return self.outputs(name)

    def delete(self, name: str) -> None:
        """Delete a stack. Raises AssertionError when it is not gone then."""
        self.client("cloudformation").delete_stack(StackName=name)
        status = self.wait(name)
        assert status == "NONE", f"{status}: {self.reasons(name)}"

    def wait(self, name: str) -> str:
        """Wait until nothing is in progress; return the status."""
        deadline = time.monotonic() + _STACK_TIMEOUT_S
        while (status := self.status(name)).endswith("_IN_PROGRESS"):
            assert time.monotonic() < deadline, f"{name}: {status}"
            time.sleep(_POLL_S)
        return status

    @cached_property
    def network(self) -> Network:
        """The network, made at first use."""
        return make_network(self.client("ec2"))


def make_network(ec2: Any) -> Network:
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    for attribute in ("EnableDnsSupport", "EnableDnsHostnames"):
        ec2.modify_vpc_attribute(VpcId=vpc, **{attribute: {"Value": True}})
    public, private = (
        ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone="us-east-1a")["Subnet"]["SubnetId"]
        for cidr in ("10.0.0.0/20", "10.0.128.0/17")
    )
    internet = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=internet, VpcId=vpc)
    address = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=public, AllocationId=address)["NatGateway"]["NatGatewayId"]
    for subnet, gateway in ((public, {"GatewayId": internet}), (private, {"NatGatewayId": nat})):
        table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
        ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", **gateway)
        ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    nodes = ec2.create_security_group(GroupName="nodes", Description="nodes", VpcId=vpc)["GroupId"]
    itself = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": nodes}]}]
    ec2.authorize_security_group_ingress(GroupId=nodes, IpPermissions=itself)
    ec2.authorize_security_group_egress(GroupId=nodes, IpPermissions=itself)
    return Network(vpc=vpc, public=public, private=private, nodes=nodes)
