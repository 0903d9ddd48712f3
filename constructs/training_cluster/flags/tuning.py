"""Flags that adjust nodes and Slurm; what has no flag goes by `overrides`."""

import re
from typing import Literal

from pydantic import BaseModel, field_validator

from training_cluster.catalog.family import AWS_ID
from training_cluster.flags.account import split_list
from training_cluster.flags.flag import flag, id_flag


class TuningFlags(BaseModel):
    """Flags of details that many clusters adjust."""

    compute_root_gib: int | None = flag(
        None,
        ge=40,
        le=16384,
        example="200",
        description="Root volume of the compute nodes of these flags, GiB. Default: the family's.",
    )
    head_image: str | None = id_flag(
        "ami",
        "an AMI id",
        description="AMI of the head node, made from ParallelCluster's for the same version and os. Kept for "
        "a cluster's life. Default: ParallelCluster's own.",
    )
    idle_minutes: int | None = flag(
        None,
        ge=-1,
        example="30",
        description="Minutes without a job after which a node is ended; -1: never. Default: 10.",
    )
    exclusive: Literal["off", "on"] = flag(
        "off",
        description="on: each job of the queue of these flags has its nodes for itself, as job.slurm always "
        "asks.",
    )
    detailed_monitoring: Literal["off", "on"] = flag(
        "off",
        description="on: EC2 sends its own metrics of all nodes every minute instead of every five, at "
        "CloudWatch's price for custom metrics.",
    )
    security_groups: str | None = flag(
        None,
        takes="ids of security groups, comma-separated (sg- and 8 or 17 hex digits)",
        example="sg-0123456789abcdef0",
        description="Security groups that all nodes have in addition to ours. Default: none.",
    )

    @field_validator("security_groups")
    @classmethod
    def _are_groups(cls, value: str | None) -> str | None:
        for each in split_list(value):
            if not re.fullmatch(rf"sg-{AWS_ID}", each):
                raise ValueError(f'"{each}" is not the id of a security group')
        return value
