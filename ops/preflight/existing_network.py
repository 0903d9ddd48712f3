"""Finds the network and the stacks that exist before a deploy."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ops.account.deploy_command import stacks_command
from ops.account.session import ClientOf
from ops.account.stacks import Stack, find_stacks
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_stack_name
from training_cluster.stack_names import NETWORK_STACK, STACK_IDS

Subnet = Mapping[str, Any]
"""Subnet as EC2 describes it."""


@dataclass(frozen=True, kw_only=True)
class ExistingNetwork:
    """The user's network, or an existing NetworkStack's; all None without one. Also existing stacks."""

    vpc_id: str | None
    public: Subnet | None
    private: Subnet | None
    node_group_id: str | None
    """Id of the nodes' security group."""
    image_stack: Stack | None = None
    """ImageStack that builds the image for these flags."""
    stacks: Mapping[str, Stack] = field(default_factory=dict)
    """Existing stacks of Training Cluster, by name."""
    deploy_command: str = ""
    """Command that deploys NetworkStack with the flags that were given."""
    foreign_stacks: tuple[str, ...] = ()
    """Names of other stacks that are named like ours."""
    is_known: bool = True
    """False if AWS did not answer."""

    @property
    def zone_id(self) -> str | None:
        """Zone of the private subnet, with the compute nodes and file systems."""
        return str(self.private["AvailabilityZoneId"]) if self.private else None

    @property
    def cidr(self) -> str | None:
        """Address range of the private subnet."""
        return str(self.private["CidrBlock"]) if self.private else None

    def has(self, stack_name: str) -> bool:
        """Return True if one of our stacks was deployed; one whose first deploy failed has no outputs."""
        return stack_name in self.stacks and bool(self.stacks[stack_name].outputs)


def read_existing_network(settings: Settings, client: ClientOf) -> ExistingNetwork:
    """Read the network from EC2 and the stacks from CloudFormation. Raises botocore's errors."""
    ours, others = find_stacks(client("cloudformation"))
    stack = ours.get(NETWORK_STACK)
    made = stack.outputs if stack else {}
    if settings.vpc_id and made.get("VpcId") != settings.vpc_id:
        made = {}  # the NetworkStack has another network
    return ExistingNetwork(
        deploy_command=stacks_command([STACK_IDS[NETWORK_STACK]], settings),
        vpc_id=settings.vpc_id or made.get("VpcId"),
        public=read_subnet(settings.public_subnet_id or made.get("PublicSubnetId"), client("ec2")),
        private=read_subnet(settings.private_subnet_id or made.get("PrivateSubnetId"), client("ec2")),
        node_group_id=settings.security_group_id or made.get("NodeSecurityGroupId"),
        image_stack=ours.get(image_stack_name(settings)),
        stacks=ours,
        foreign_stacks=tuple(others),
    )


def unknown_network(settings: Settings) -> ExistingNetwork:
    """Return the network of the flags if AWS does not answer, as if nothing were deployed."""
    return ExistingNetwork(
        deploy_command=stacks_command([STACK_IDS[NETWORK_STACK]], settings),
        vpc_id=settings.vpc_id,
        public=None,
        private=None,
        node_group_id=settings.security_group_id,
        is_known=False,
    )


def read_subnet(id_: str | None, ec2: Any) -> Subnet | None:
    """Return a subnet as EC2 describes it; None without an id, or if it does not exist."""
    if id_ is None:
        return None
    found: list[Subnet] = ec2.describe_subnets(Filters=[{"Name": "subnet-id", "Values": [id_]}])["Subnets"]
    return found[0] if found else None
