"""An account of the local AWS as a person has it: clients, a network made by hand, stacks, the library."""

import json
import subprocess
import time
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rehearsal.account import Reader
from training_cluster.paths import PCLUSTER_PYTHON

# Calls the library: operations with their arguments come in, answers or refusals go out.
_DRIVER = """
import json, sys
import pcluster.lib as library
from pcluster.api.errors import exception_message
from pcluster.aws.aws_api import AWSApi
from pcluster.aws.common import Cache

def call(operation, arguments):
    Cache.clear_all()
    AWSApi.reset()
    try:
        return dict(getattr(library, operation)(**arguments))
    except Exception as error:
        content = exception_message(error)
        return {"refused": content.to_dict() if hasattr(content, "to_dict") else dict(content)}

print(json.dumps([call(*request) for request in json.load(sys.stdin)], default=str))
"""
_DRY_RUN_PASSED = "Request would have succeeded, but DryRun flag is set."
_POLL_S = 0.2
_STACK_TIMEOUT_S = 60

Config = dict[str, Any]
Queue = dict[str, Any]
Template = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Network:
    """A VPC made by plain API calls, as a person brings one: a public and a private subnet in one zone."""

    vpc: str
    public: str
    private: str
    nodes: str
    """Security group, open to itself both ways, as EFA needs it."""

    def queue(self, name: str, instance_type: str, *, count: int = 2, **more: Any) -> Queue:
        """Return a queue of one compute resource; `resource` and `networking` add to those."""
        networking = {"SubnetIds": [self.private], "AdditionalSecurityGroups": [self.nodes]}
        resource = {"Name": name, "InstanceType": instance_type, "MinCount": 0, "MaxCount": count}
        return {
            "Name": name,
            "Networking": networking | more.pop("networking", {}),
            "ComputeResources": [resource | more.pop("resource", {})],
            **more,
        }

    def config(self, *queues: Queue, **more: Any) -> Config:
        """Return a cluster config with these queues, or with a small one."""
        networking = {"SubnetId": self.public, "AdditionalSecurityGroups": [self.nodes]}
        return {
            "Region": "us-east-1",
            "Image": {"Os": "ubuntu2404"},
            "HeadNode": {"InstanceType": "m6i.xlarge", "Networking": networking},
            "Scheduling": {
                "Scheduler": "slurm",
                "SlurmQueues": list(queues) or [self.queue("cpu", "m6i.xlarge")],
            },
            **more,
        }


@dataclass(frozen=True)
class Account(Reader):
    """The actions of a person with the account's credentials."""

    def library(self, *requests: tuple[str, dict[str, Any]]) -> list[dict[str, Any]]:
        """Call operations of pcluster.lib, in order and in one process."""
        done = subprocess.run(
            [PCLUSTER_PYTHON, "-c", _DRIVER],
            input=json.dumps(requests),
            env=self.address.client_environment(),
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        answers: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
        return answers

    def refusals(self, **configs: Config) -> dict[str, list[str]]:
        """Validate configs: what the library refuses each for, `Validator: message`; [] when it passes."""
        requests = [
            ("create_cluster", {"cluster_name": "dry-run", "cluster_configuration": config, "dryrun": True})
            for config in configs.values()
        ]
        answers = self.library(*requests)
        return {name: _errors(answer["refused"]) for name, answer in zip(configs, answers, strict=True)}

    def deploy(self, name: str, template: Template) -> dict[str, str]:
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


def _errors(refused: dict[str, Any]) -> list[str]:
    if refused["message"] == _DRY_RUN_PASSED:
        return []
    found = refused.get("configuration_validation_errors") or []
    return [f"{e['type']}: {e['message']}" for e in found if e["level"] == "ERROR"] or [refused["message"]]


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
