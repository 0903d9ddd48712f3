"""Every context flag of the app: typed, described, checked one by one (rules.py: against each other)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from training_cluster.families import family_names, load_base, load_family
from training_cluster.flags import FSX_STEP_GIB, explain, explain_contradictions
from training_cluster.hardware import INSTANCE_TYPE, CapacityKind, Family, Size
from training_cluster.problems import ConfigurationError, did_you_mean
from training_cluster.rules import contradictions

PCLUSTER_VERSION = "3.16.1"
"""AWS ParallelCluster's version; follows requirements-pcluster.txt (tests/unit/test_layout.py)."""

# Names that our own stacks take in the account; ParallelCluster's stack is named as the cluster.
STACK_NAMES = ("NetworkStack", "StorageStack", "ImageStack", "AccountingStack", "TrainingClusterStack")

_ID = "(?:[0-9a-f]{8}|[0-9a-f]{17})"


@dataclass(frozen=True)
class Capacity:
    """How nodes are bought."""

    kind: CapacityKind
    reservation_id: str | None = None
    """Of a reservation or a Capacity Block: cr-..."""


class Settings(BaseModel):
    """The app's public interface: `cdk deploy TrainingClusterStack -c flag=value`.

    A default of None means the family's own, from the catalog.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

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
        pattern=rf"^(ondemand|spot|(reservation|capacity-block):cr-{_ID})$",
        description="How nodes are bought. Spot nodes can go at any time; their jobs are queued again.",
    )
    placement_group: str = Field(
        "auto",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,254}$",
        description="Cluster placement group. auto: a new one for EFA families, on demand or spot; none with "
        "a reservation. A name: an existing group, such as the one that a reservation is tied to.",
    )
    zone: str = Field(
        "auto",
        pattern=r"^(auto|[a-z]{2}(-[a-z]+)+-\d[a-z]|[a-z]{2,4}\d-az\d)$",
        description="Availability zone of everything: auto (the region's first), a name (us-east-1a) or an "
        "id (use1-az4; the same place in every account). Kept for the life of NetworkStack.",
    )
    image: str | None = Field(
        None,
        pattern=rf"^(official|build|ami-{_ID})$",
        description="Image of the compute nodes: ParallelCluster's own, one that the image pipeline built, "
        "or an AMI of yours. Default: official; build for families that official does not run on (p3dn).",
    )
    os: Literal["ubuntu2204", "ubuntu2404", "alinux2023"] = Field(
        "ubuntu2204", description="Operating system of every node. Kept for a cluster's life."
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
        0, ge=0, le=10, description="Login nodes behind a load balancer, beside the head node."
    )
    accounting: str = Field(
        "off",
        pattern=r"^(off|new|[a-z0-9][a-z0-9.-]*\.[a-z0-9-]+(:\d{2,5})?)$",
        description="Slurm's job accounting: off, new (an Aurora Serverless database in AccountingStack), or "
        "the host[:port] of a MySQL database.",
    )
    accounting_user: str = Field(
        "slurm", pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$", description="User of that MySQL database."
    )
    accounting_secret: str | None = Field(
        None,
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:\S+$",
        description="ARN of the Secrets Manager secret that holds its password, as plain text.",
    )
    vpc_id: str | None = Field(
        None,
        pattern=rf"^vpc-{_ID}$",
        description="Your own VPC, with public_subnet_id and private_subnet_id. Default: a new one.",
    )
    public_subnet_id: str | None = Field(
        None,
        pattern=rf"^subnet-{_ID}$",
        description="Subnet of head and login nodes, with a route to an internet gateway.",
    )
    private_subnet_id: str | None = Field(
        None,
        pattern=rf"^subnet-{_ID}$",
        description="Subnet of compute nodes and file systems, with a route to a NAT gateway.",
    )
    security_group_id: str | None = Field(
        None,
        pattern=rf"^sg-{_ID}$",
        description="Security group of all nodes, open to itself in and out. Default: a new one in that VPC.",
    )
    fsx_gib: int = Field(
        1200, ge=1200, description="Capacity of the Lustre file system in GiB: 1200 or a multiple of 2400."
    )
    fsx_mbps_per_tib: Literal["125", "250", "500", "1000"] = Field(
        "250", description="Throughput of the Lustre file system, MB/s for each TiB of capacity."
    )
    efs_mibps: int | None = Field(
        None,
        ge=1,
        le=1024,
        description="Provisioned throughput of the EFS file system, MiB/s, paid by the hour. Default: "
        "elastic, paid by what is read and written.",
    )
    cluster_name: str = Field(
        "training",
        pattern=r"^[a-zA-Z][a-zA-Z0-9-]{0,59}$",
        description="Name of the cluster. Another name is another cluster on the same network and storage.",
    )

    @field_validator("fsx_mbps_per_tib", mode="before")
    @classmethod
    def _number_as_text(cls, value: object) -> object:
        return str(value) if isinstance(value, int) else value

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

    @field_validator("fsx_gib")
    @classmethod
    def _fsx_capacity(cls, value: int) -> int:
        if value != 1200 and value % FSX_STEP_GIB:  # noqa: PLR2004
            up = (value // FSX_STEP_GIB + 1) * FSX_STEP_GIB
            raise ValueError(f"FSx takes 1200 or a multiple of {FSX_STEP_GIB}: the next is {up}")
        return value

    @field_validator("cluster_name")
    @classmethod
    def _not_a_stack(cls, value: str) -> str:
        if value.lower() in {name.lower() for name in STACK_NAMES} or value.lower() == "cdktoolkit":
            raise ValueError("that is the name of a stack of this app; a cluster becomes a stack of its own")
        return value

    @property
    def family_facts(self) -> Family:
        """The catalog's entry of the chosen family."""
        return load_family(self.family)

    @property
    def compute_type(self) -> str:
        """Instance type of the compute nodes."""
        return self.instance_type or self.family_facts.main_size

    @property
    def size(self) -> Size:
        """The catalog's facts of that type."""
        return self.family_facts.size(self.compute_type)

    @property
    def bought(self) -> Capacity:
        """`capacity`, taken apart."""
        kind, _, reservation = self.capacity.partition(":")
        return Capacity(kind, reservation or None)  # type: ignore[arg-type]  # the pattern allows no other

    @property
    def static_nodes(self) -> int:
        """Nodes that always run: all of a Capacity Block, else `min_nodes`."""
        return self.nodes if self.bought.kind == "capacity-block" else self.min_nodes

    @property
    def wants_new_placement_group(self) -> bool:
        """Whether the queue gets a placement group of its own; its capacity and EFA decide."""
        return self.placement_group == "auto" and self.size.efa and self.bought.reservation_id is None

    @property
    def node_image(self) -> str:
        """official, build or ami-...: what was asked for, else what the family needs."""
        return self.image or ("build" if self.family_facts.official_image_refused else "official")

    @property
    def head_type(self) -> str:
        """Instance type of the head node."""
        return self.head_node_type or self.family_facts.head_node_type

    @property
    def cpu_queue_type(self) -> str | None:
        """Instance type of the CPU queue; None without one."""
        if self.cpu_queue == "off":
            return None
        return load_base().cpu_queue.instance_type if self.cpu_queue == "on" else self.cpu_queue

    @property
    def stack_name(self) -> str:
        """CloudFormation name of TrainingClusterStack for this cluster."""
        return (
            "TrainingClusterStack"
            if self.cluster_name == "training"
            else f"TrainingClusterStack-{self.cluster_name}"
        )

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Settings:
        """Read the flags out of the CDK context; keys with ':' or a leading '@' are CDK's own.

        Raises:
            ConfigurationError: an unknown flag, a wrong value, or values that contradict each other.
        """
        flags = {k: v for k, v in context.items() if ":" not in k and not k.startswith("@")}
        try:
            settings = cls(**flags)
        except ValidationError as error:
            raise ConfigurationError(explain(error, cls.model_fields)) from None
        if found := contradictions(settings):
            raise ConfigurationError(explain_contradictions(found))
        return settings
