"""Flags of the cluster itself: nodes, image, queues, accounting."""

from __future__ import annotations

import re
from typing import Literal

from pydantic import BaseModel, Field, field_validator

from training_cluster.catalog.families import family_names
from training_cluster.catalog.family import INSTANCE_TYPE
from training_cluster.catalog.pcluster_version import read_pcluster_version
from training_cluster.catalog.workloads import load_workloads
from training_cluster.problems import did_you_mean
from training_cluster.stack_names import DEFAULT_CLUSTER, is_taken

PCLUSTER_VERSION = read_pcluster_version()

AWS_ID = "(?:[0-9a-f]{8}|[0-9a-f]{17})"

NO_WORKLOADS = "none"


class ClusterFlags(BaseModel):
    """A default of None means the family's own, from the catalog."""

    family: str = Field(
        "p4d", description="Instance family of the compute nodes: a file of cluster_configs/."
    )
    instance_type: str | None = Field(
        None, description="Another size of the family (docs/families.md). Default: its main size."
    )
    nodes: int = Field(2, ge=1, le=4096, description="Most compute nodes that run at a time.")
    min_nodes: int = Field(
        0,
        ge=0,
        le=4096,
        description="Compute nodes that always run. 0: a node costs only while jobs want it. "
        "A Capacity Block is paid already: all its nodes always run.",
    )
    capacity: str = Field(
        "ondemand",
        pattern=rf"^(ondemand|spot|(reservation|capacity-block):cr-{AWS_ID})$",
        description="How nodes are bought. Spot nodes can go at any time; their jobs are queued again.",
    )
    placement_group: str = Field(
        "auto",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,254}$",
        description="Cluster placement group. auto: a new one for EFA families, on demand or spot; none with "
        "a reservation. A name: an existing group, such as the one that a reservation is tied to.",
    )
    image: str | None = Field(
        None,
        pattern=rf"^(official|build|ami-{AWS_ID})$",
        description="Image of the compute nodes: ParallelCluster's own, one that the image pipeline built, "
        "or an AMI of yours. Default: official; build for families that official does not run on (p3dn). "
        "Head node, login nodes and cpu_queue always have the official one.",
    )
    image_rebuild: Literal["manual", "monthly"] = Field(
        "manual",
        description="When ImageStack builds beside deploys, with image=build: when asked to (its output "
        "BuildAgain), or also on the first of each month, from the same parent and pins, for the "
        "distribution's newer packages. The next deploy rolls the image out.",
    )
    workloads: str | None = Field(
        None,
        pattern=r"^(none|[a-z0-9][a-z0-9_-]*(,[a-z0-9][a-z0-9_-]*)*)$",
        description="Workloads whose Python environments nodes are made with, so that a first job does not "
        "wait for them; comma separated, or none. Default: with image=build all that suit the family, else "
        "none.",
    )
    os: Literal["ubuntu2204", "ubuntu2404", "alinux2023"] | None = Field(
        None,
        description="Operating system of every node. Kept for a cluster's life. Default: the family's: "
        "ubuntu2404 for Trainium, ubuntu2204 for the others.",
    )
    head_node_type: str | None = Field(
        None,
        pattern=INSTANCE_TYPE,
        description="Instance type of the head node. Kept for a cluster's life. Default: the family's.",
    )
    head_root_gib: int | None = Field(
        None,
        ge=40,
        le=16384,
        description="Root volume of the head node, GiB. Kept for a cluster's life. Default: the family's.",
    )
    cpu_queue: str = Field(
        "off",
        pattern=r"^(off|on|[a-z][a-z0-9-]*\.[a-z0-9]+)$",
        description="A second queue without accelerators, for data preparation: off, on, or its instance "
        "type.",
    )
    login_nodes: int = Field(
        0,
        ge=0,
        le=10,
        description="Login nodes behind a load balancer, beside the head node. Once there, they stay for "
        "the cluster's life: 1 at least.",
    )
    accounting: str = Field(
        "off",
        pattern=r"^(off|new|[a-z0-9][a-z0-9.-]*\.[a-z0-9-]+(:\d{2,5})?)$",
        description="Slurm's job accounting: off, new (an Aurora Serverless database in AccountingStack), or "
        "the host[:port] of a MySQL database. A change stops the fleet (on_busy).",
    )
    accounting_user: str = Field(
        "slurm", pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$", description="User of that MySQL database."
    )
    accounting_secret: str | None = Field(
        None,
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:\S+$",
        description="ARN of the Secrets Manager secret that holds its password, as plain text.",
    )
    cluster_name: str = Field(
        DEFAULT_CLUSTER,
        pattern=r"^[a-zA-Z][a-zA-Z0-9-]{0,59}$",
        description="Name of the cluster. Another name is another cluster on the same network and storage.",
    )
    on_busy: Literal["fail", "drain", "stop"] = Field(
        "fail",
        description="What an update does that wants running compute nodes gone: fail and change nothing; "
        "drain "
        "them, where ParallelCluster can: their jobs end first; stop the fleet and its jobs, update, start "
        "it again. A fleet without running nodes is always stopped and started.",
    )
    pcluster_version: str = Field(
        PCLUSTER_VERSION,
        description="ParallelCluster's version: that of the library which this app is made with. A newer one "
        "is a newer release of this app, and a new cluster on the same storage.",
    )
    layer: Literal["hosted", "build"] = Field(
        "hosted",
        description="The Lambda layer with the ParallelCluster library: hosted, AWS's own for this version; "
        "build, of this app's locked packages, as `make layer` builds it.",
    )

    @field_validator("family")
    @classmethod
    def _known_family(cls, value: str) -> str:
        names = family_names()
        if value not in names:
            raise ValueError(f"no such instance family.{did_you_mean(value, names)}")
        return value

    @field_validator("head_node_type")
    @classmethod
    def _x86_64(cls, value: str | None) -> str | None:
        if value and re.match(r"^[a-z]+\d+g[a-z]*\.", value):
            raise ValueError("a Graviton type; every image and every family here is x86_64")
        return value

    @field_validator("pcluster_version")
    @classmethod
    def _is_ours(cls, value: str) -> str:
        if value != PCLUSTER_VERSION:
            raise ValueError("the schema, the library and the images of this release are another version's")
        return value

    @field_validator("workloads")
    @classmethod
    def _known_workloads(cls, value: str | None) -> str | None:
        names = tuple(load_workloads())
        for name in [] if value in (None, NO_WORKLOADS) else str(value).split(","):
            if name not in names:
                raise ValueError(f'"{name}" is no workload with an environment.{did_you_mean(name, names)}')
        return value

    @field_validator("cluster_name")
    @classmethod
    def _not_a_stack(cls, value: str) -> str:
        if is_taken(value):
            raise ValueError("that is the name of a stack of this app; a cluster becomes a stack of its own")
        return value

    @field_validator("cluster_name")
    @classmethod
    def _collides_with_no_other(cls, value: str) -> str:
        if value != value.lower():
            raise ValueError(
                "IAM's names and the cluster's private DNS zone ignore case, so names that differ in case "
                "alone collide"
            )
        # PCLUSTER_DYNAMODB_PREFIX and PCLUSTER_SLURM_DYNAMODB_PREFIX of ParallelCluster, one table by each.
        if value.startswith("slurm-"):
            raise ValueError(
                f"its table parallelcluster-{value} is also a table of the cluster "
                f"{value.removeprefix('slurm-')}"
            )
        return value
