"""Flags of the network: which one, where, and who may come in."""

from __future__ import annotations

import ipaddress
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from training_cluster.cluster_flags import AWS_ID


class NetworkFlags(BaseModel):
    """Without ids of an own network, NetworkStack makes one."""

    zone: str = Field(
        "auto",
        pattern=r"^(auto|[a-z]{2}(-[a-z]+)+-\d[a-z]|[a-z]{2,4}\d-az\d)$",
        description="Availability zone of everything: auto (the region's first), a name (us-east-1a) or an "
        "id (use1-az4; the same place in every account). Kept for the life of NetworkStack.",
    )
    vpc_id: str | None = Field(
        None,
        pattern=rf"^vpc-{AWS_ID}$",
        description="Your own VPC, with public_subnet_id and private_subnet_id. Default: a new one.",
    )
    public_subnet_id: str | None = Field(
        None,
        pattern=rf"^subnet-{AWS_ID}$",
        description="Subnet of head and login nodes, with a route to an internet gateway.",
    )
    private_subnet_id: str | None = Field(
        None,
        pattern=rf"^subnet-{AWS_ID}$",
        description="Subnet of compute nodes and file systems, with a route to a NAT gateway.",
    )
    security_group_id: str | None = Field(
        None,
        pattern=rf"^sg-{AWS_ID}$",
        description="Security group of all nodes, open to itself in and out. Default: a new one in that VPC.",
    )
    endpoints: Literal["none", "private"] = Field(
        "none",
        description="private: interface endpoints for the AWS APIs that nodes call, so that those calls do "
        "not leave the VPC; paid by the hour. S3 has its gateway endpoint always.",
    )
    ssh_from: str | None = Field(
        None,
        description="Network (CIDR) from which port 22 of the nodes is reached. Default: nobody; Session "
        "Manager needs no open port.",
    )
    ssh_from_anywhere: Literal["no", "yes"] = Field(
        "no", description="yes: let ssh_from be the whole internet, 0.0.0.0/0."
    )

    @field_validator("ssh_from")
    @classmethod
    def _is_network(cls, value: str | None) -> str | None:
        if value is not None:
            try:
                ipaddress.IPv4Network(value)
            except ValueError as error:
                raise ValueError(f"no IPv4 network: {error}") from None
        return value
