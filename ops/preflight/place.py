"""Where the cluster will stand, as far as it is known before the deploy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ops.account.session import ClientOf
from ops.account.stacks import Stack, find_stacks
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_stack_name
from training_cluster.stack_names import NETWORK_STACK

Subnet = Mapping[str, Any]
"""As EC2 describes it."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A network: yours, or that of a NetworkStack which is there already; all None before there is one."""

    vpc_id: str | None
    public: Subnet | None
    private: Subnet | None
    node_group_id: str | None
    """Security group of the nodes."""
    image_stack: Stack | None = None
    """The one that builds images for these flags."""
    stacks: Mapping[str, Stack] = field(default_factory=dict)
    """Ours that are there, by name."""
    foreign_stacks: tuple[str, ...] = ()
    """Called like ours, and others'."""

    @property
    def zone_id(self) -> str | None:
        """The private subnet's zone: compute nodes and file systems stand there."""
        return str(self.private["AvailabilityZoneId"]) if self.private else None

    @property
    def cidr(self) -> str | None:
        """The private subnet's addresses."""
        return str(self.private["CidrBlock"]) if self.private else None

    def has(self, stack_name: str) -> bool:
        """Whether one of our stacks is there; one whose first deploy failed says nothing of itself."""
        return stack_name in self.stacks and bool(self.stacks[stack_name].outputs)


def read_place(settings: Settings, client: ClientOf) -> Place:
    """Ask EC2 and CloudFormation. Raises botocore's errors."""
    ours, others = find_stacks(client("cloudformation"))
    stack = ours.get(NETWORK_STACK)
    made = stack.outputs if stack else {}
    if settings.vpc_id and made.get("VpcId") != settings.vpc_id:
        made = {}  # of another network
    return Place(
        vpc_id=settings.vpc_id or made.get("VpcId"),
        public=_subnet(settings.public_subnet_id or made.get("PublicSubnetId"), client("ec2")),
        private=_subnet(settings.private_subnet_id or made.get("PrivateSubnetId"), client("ec2")),
        node_group_id=settings.security_group_id or made.get("NodeSecurityGroupId"),
        image_stack=ours.get(image_stack_name(settings)),
        stacks=ours,
        foreign_stacks=tuple(others),
    )


def unknown_place(settings: Settings) -> Place:
    """What the flags say, where AWS does not: as if nothing were deployed."""
    return Place(vpc_id=settings.vpc_id, public=None, private=None, node_group_id=settings.security_group_id)


def _subnet(id_: str | None, ec2: Any) -> Subnet | None:
    if id_ is None:
        return None
    found: list[Subnet] = ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": [id_]}])["Subnets"]
    return found[0] if found else None
