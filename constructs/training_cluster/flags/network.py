"""Flags of the network: its ids, its zone, its endpoints, SSH."""

import ipaddress
from typing import Literal

from pydantic import BaseModel, field_validator

from training_cluster.flags.flag import flag, id_flag

# APIs that nodes call, in addition to S3 and DynamoDB, whose gateway endpoints always exist. From
# ParallelCluster's guide ("a single subnet with no internet access"), its cookbook, and the roles that it
# gives to nodes. Left out, since no node may call them: FSx and EFS (mounts use DNS), Elastic Load Balancing
# (only with a custom munge key). Route 53, in which the head node records the names of compute nodes, has no
# endpoint: its calls, and packages, still use the NAT gateway.
INTERFACE_ENDPOINTS = (
    "cloudformation",  # every node reads its settings; login and head nodes send a signal
    "ec2",  # the head node starts and ends nodes
    "logs",  # every node writes its own
    "monitoring",  # memory, disk and our own metrics
    "autoscaling",  # a login node reports that it may be terminated
    "secretsmanager",  # the password of the accounting database
    "sts",  # `aws sts get-caller-identity`, and jobs that take on a role
    "sns",  # mail of jobs (job_emails), and of the head node's alerts (alarm_email)
    *("ecr.api", "ecr.dkr"),  # images of containers
    # Session Manager. Not ec2messages: agents since 3.3.40 (2024) use ssmmessages instead, and each endpoint
    # is paid by the hour.
    "ssm",
    "ssmmessages",
)
METRICS_ENDPOINT = "aps-workspaces"
"""The head node's metrics, with metrics=amp; not in every region."""
CHINA = "aws-cn"
"""Partition of the regions Beijing and Ningxia."""
# From the CDK's list for both regions (InterfaceVpcEndpointAwsService); compared in a test.
_PREFIXED_IN_CHINA = ("autoscaling", "cloudformation", "ec2", "ecr.api", "ecr.dkr", "monitoring", "sts")
# Prefix length of the largest network that one owner has: 10.0.0.0/8, among the private ones.
_WIDEST_PREFIX = 8


def is_wide(network: str) -> bool:
    """Return True if an IPv4 network may reach port 22 with ssh_from_anywhere=yes alone."""
    return ipaddress.IPv4Network(network).prefixlen < _WIDEST_PREFIX


def endpoint_prefix(service: str, partition: str) -> str:
    """Return the beginning of the name of an interface endpoint's service, before its region."""
    return "cn.com.amazonaws" if partition == CHINA and service in _PREFIXED_IN_CHINA else "com.amazonaws"


class NetworkFlags(BaseModel):
    """Flags of the network. Without the ids of an own one, NetworkStack makes a network."""

    zone: str = flag(
        "auto",
        pattern=r"^(auto|[a-z]{2}(-[a-z]+)+-\d[a-z]|[a-z]{2,4}\d-az\d)$",
        takes="auto, a zone name such as us-east-1a, a zone id such as use1-az4",
        description="Availability zone of everything: auto (the reservation's, else the first that offers "
        "every instance type), a name (us-east-1a) or an id (use1-az4; the same place in every account). "
        "Kept for the life of NetworkStack.",
        on_change="refused by NetworkStack, with the zones that would do; auto keeps the zone",
        is_compared=False,
    )
    vpc_id: str | None = id_flag(
        "vpc",
        "a VPC id",
        description="Your own VPC, with private_subnet_id and public_subnet_id. Default: a new one.",
    )
    public_subnet_id: str | None = id_flag(
        "subnet",
        "a subnet id",
        description="Subnet of head and login nodes, with a route to an internet gateway.",
    )
    private_subnet_id: str | None = id_flag(
        "subnet",
        "a subnet id",
        description="Subnet of compute nodes and file systems, with a route to a NAT gateway.",
    )
    security_group_id: str | None = id_flag(
        "sg",
        "a security group id",
        description="Security group of all nodes, open to itself in and out. Default: a new one in that VPC.",
    )
    endpoints: Literal["none", "private"] = flag(
        "none",
        description="private: interface endpoints for the AWS APIs that nodes call, so that those calls do "
        "not leave the VPC (but for Route 53, which has none, and other regions); paid by the hour. S3 and "
        "DynamoDB always have theirs.",
        on_change="live",
    )
    ssh_from: str | None = flag(
        None,
        takes="an IPv4 network such as 203.0.113.0/24",
        example="203.0.113.0/24",
        description="Network (CIDR) from which port 22 of the nodes is reached. Default: nobody; Session "
        "Manager needs no open port.",
        on_change="live",
        is_compared=False,
    )
    ssh_from_anywhere: Literal["no", "yes"] = flag(
        "no",
        description="yes: let ssh_from be the whole internet, 0.0.0.0/0.",
        on_change="live",
        is_compared=False,
    )

    @field_validator("ssh_from")
    @classmethod
    def _is_network(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ipaddress.IPv4Network(value)
            except ValueError as error:
                raise ValueError(f"not an IPv4 network: {error}") from None
        return value
