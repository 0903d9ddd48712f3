"""Flags of the compute nodes: type, number, purchase option, image."""

from typing import Literal

from pydantic import BaseModel, field_validator

from training_cluster.catalog.families import family_names
from training_cluster.catalog.family import AWS_ID, QUEUE_NAME, RESERVATIONS
from training_cluster.catalog.instance_types import family_of_type, other_families, refused_family
from training_cluster.catalog.workloads import load_workloads
from training_cluster.flags.flag import flag
from training_cluster.problems import did_you_mean

NO_WORKLOADS = "none"
"""Value of `workloads` for nodes without any environment."""


class ComputeFlags(BaseModel):
    """Flags of the compute nodes. A default of None means the family's own, from the catalog."""

    family: str = flag(
        "p4d",
        takes=f"{', '.join(family_names())}, or any other of EC2's, such as g4dn",
        description="Instance family of the compute nodes: a file of cluster_configs/, or any other of "
        "EC2's, with conservative settings.",
    )
    instance_type: str | None = flag(
        None,
        takes="an instance type of EC2, such as docs/families.md lists",
        example="p4d.24xlarge",
        description="Another size of the family (docs/families.md), or any instance type without family. "
        "Default: the family's main size.",
    )
    nodes: int = flag(2, ge=1, le=4096, description="Most compute nodes that run at a time.")
    min_nodes: int = flag(
        0,
        ge=0,
        le=4096,
        description="Compute nodes that always run. 0: a node costs only while jobs need it. "
        "A Capacity Block is paid already: all its nodes always run.",
    )
    capacity: str = flag(
        "ondemand",
        pattern=rf"^(ondemand|spot|reservation:{RESERVATIONS}|capacity-block:cr-{AWS_ID})$",
        takes="ondemand, spot, reservation:cr-..., reservation:ARN of a resource group of reservations, "
        "capacity-block:cr-... (8 or 17 hex digits)",
        description="Purchase option of nodes. Spot nodes can go at any time; their jobs are queued again.",
    )
    placement_group: str = flag(
        "auto",
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._ -]{0,254}$",
        takes="auto, on, off, the name of an existing group",
        description="Cluster placement group. auto: a new one for EFA families; none with a reservation, for "
        "several instance types, or on spot for nodes with one network card, because EC2 finds less capacity "
        "within a group. on: a new one in any case. A name: an existing group, such as the one that a "
        "reservation is tied to.",
    )
    image: str | None = flag(
        None,
        pattern=rf"^(official|build|ami-{AWS_ID})$",
        takes="official, build, an AMI id (ami- and 8 or 17 hex digits)",
        example="official",
        description="Image of the compute nodes: ParallelCluster's own, one that the image pipeline built, "
        "or your own AMI. Default: official; build for families that official does not run on (p3dn). "
        "Head node, login nodes and cpu_queue always have the official one.",
    )
    image_rebuild: Literal["manual", "monthly"] = flag(
        "manual",
        description="When ImageStack builds in addition to deploys, with image=build: when asked to (its "
        "output BuildAgain), or also on the first of each month, from the same parent and pins, for the "
        "distribution's newer packages. The next deploy rolls the image out.",
        on_change="live: when ImageStack builds; the next deploy rolls an image out as `image` says",
    )
    workloads: str | None = flag(
        None,
        pattern=r"^(none|[a-z0-9][a-z0-9_-]*(,[a-z0-9][a-z0-9_-]*)*)$",
        takes=f"{NO_WORKLOADS}, or some of {', '.join(load_workloads())}",
        example=NO_WORKLOADS,
        description="Workloads whose Python environments nodes are made with, so that a first job does not "
        "wait for them; comma separated, or none. Default: with image=build all that suit the family, else "
        "none.",
        on_change="with image=build another image is built first, and rolled out as `image` says; else live: "
        "new nodes make the environments",
    )

    queue_name: str | None = flag(
        None,
        pattern=QUEUE_NAME,
        takes="a lower-case letter, then letters, digits and hyphens, 25 at most",
        example="train",
        description="Name of the queue that these flags describe, or of one in the file `queues` that takes "
        "their place. Default: the family's, such as gpu.",
    )
    queues: str | None = flag(
        None,
        is_file=True,
        example="queues.yaml",
        description="File with queues in addition to the flags' own: other instance types, capacity, "
        "subnets (docs/queues.md). Default: none.",
        on_change="as ParallelCluster takes each queue: trainctl plan lists them",
        is_compared=False,
    )

    @field_validator("family")
    @classmethod
    def _known_family(cls, value: str) -> str:
        names = family_names()
        if value not in (*names, *other_families()):
            hint = did_you_mean(value, (*names, *other_families()))
            raise ValueError(refused_family(value) or f"no such instance family.{hint}")
        return value

    @field_validator("instance_type")
    @classmethod
    def _no_refused_type(cls, value: str | None) -> str | None:
        if value and (refused := refused_family(family_of_type(value))):
            raise ValueError(refused)
        return value

    @field_validator("workloads")
    @classmethod
    def _known_workloads(cls, value: str | None) -> str | None:
        names = tuple(load_workloads())
        for name in [] if value in (None, NO_WORKLOADS) else str(value).split(","):
            if name not in names:
                raise ValueError(
                    f'"{name}" is not a workload with an environment.{did_you_mean(name, names)}'
                )
        return value
