"""Flags of the cluster itself: head and login nodes, accounting, name, updates, version."""

import re
from typing import Literal

from pydantic import BaseModel, field_validator

from training_cluster.catalog.family import INSTANCE_TYPE
from training_cluster.flags.flag import flag
from training_cluster.paths import ROOT
from training_cluster.stack_names import DEFAULT_CLUSTER, is_taken

_REQUIREMENTS = ROOT / "requirements-pcluster.txt"
_PIN = re.compile(r"^aws-parallelcluster==(\d+\.\d+\.\d+)$", re.MULTILINE)
if len(_PINS := _PIN.findall(_REQUIREMENTS.read_text())) != 1:
    raise ValueError(f"{_REQUIREMENTS}: expected one line aws-parallelcluster==X.Y.Z, found {len(_PINS)}")
PCLUSTER_VERSION = str(_PINS[0])
"""Version of ParallelCluster: the one line of its requirements, which pins the library."""


class ClusterFlags(BaseModel):
    """Flags of the cluster. A default of None means the family's own, from the catalog."""

    os: Literal["ubuntu2204", "ubuntu2404", "alinux2023"] | None = flag(
        None,
        example="ubuntu2204",
        description="Operating system of every node. Kept for a cluster's life. Default: the family's, "
        "ubuntu2404. The Python 3.10 of ubuntu2204 is too old for titan.",
    )
    head_node_type: str | None = flag(
        None,
        pattern=INSTANCE_TYPE,
        takes="an instance type such as c5.4xlarge, of the compute nodes' architecture",
        example="c5.4xlarge",
        description="Instance type of the head node. Kept for a cluster's life. Default: the family's.",
    )
    head_root_gib: int | None = flag(
        None,
        ge=40,
        le=16384,
        example="256",
        description="Root volume of the head node, GiB. Kept for a cluster's life. Default: the family's.",
    )
    cpu_queue: str = flag(
        "off",
        pattern=r"^(off|on|[a-z][a-z0-9-]*\.[a-z0-9]+)$",
        takes="off, on, an instance type such as m6i.32xlarge",
        description="A second queue without accelerators, for data preparation: off, on, or its instance "
        "type.",
    )
    topology: Literal["auto", "off"] | None = flag(
        None,
        example="auto",
        description="auto: Slurm knows where EC2 has placed the nodes in its network, gives a job nodes that "
        "are near each other, and ranks follow (docs/scale.md). Default: auto for a cluster that this "
        "release creates, off for an older one.",
        on_change="live: when EC2 has placed a node, slurmctld and slurmd start again with the new settings "
        "(scontrol reconfigure), and jobs continue; off: at once",
    )
    login_nodes: int = flag(
        0,
        ge=0,
        le=10,
        description="Login nodes behind a load balancer, in addition to the head node. Once there, they "
        "stay for the cluster's life: 1 at least.",
    )
    public_access: Literal["on", "off"] = flag(
        "on",
        description="off: head and login nodes have no public address. They are in the private subnet, and "
        "are reached by Session Manager or from the VPC. Kept for a cluster's life. Your own VPC needs no "
        "public_subnet_id then.",
    )
    accounting: str = flag(
        "off",
        pattern=r"^(off|new|[a-z0-9][a-z0-9.-]*\.[a-z0-9-]+(:\d{2,5})?)$",
        takes="off, new, or host[:port] of a MySQL database",
        description="Slurm's job accounting: off, new (an Aurora Serverless database in AccountingStack), or "
        "the host[:port] of a MySQL database. A change stops the fleet (on_busy).",
    )
    accounting_user: str = flag(
        "slurm",
        pattern=r"^[A-Za-z][A-Za-z0-9_]{0,31}$",
        takes="a letter, then letters, digits and underscores, 32 characters at most",
        description="User of that MySQL database.",
    )
    accounting_secret: str | None = flag(
        None,
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:\d{12}:secret:\S+$",
        takes="an ARN such as arn:aws:secretsmanager:us-east-1:123456789012:secret:name-AbCdEf",
        example="arn:aws:secretsmanager:us-east-1:123456789012:secret:slurm-AbCdEf",
        description="ARN of the Secrets Manager secret that holds its password, as plain text.",
    )
    overrides: str | None = flag(
        None,
        is_file=True,
        example="overrides.yaml",
        description="File with keys of ParallelCluster's cluster config that are merged into ours, for what "
        "has no flag (docs/overrides.md). Default: none.",
        on_change="as ParallelCluster takes each key: trainctl plan lists them",
        is_compared=False,
    )
    users: str | None = flag(
        None,
        is_file=True,
        example="users.yaml",
        description="File of the people who share the cluster: names, uids, keys, project accounts, limits "
        "(docs/how-to/users.md). Default: the cluster's own user alone.",
        on_change="live: new people get in, others are locked and keep their data; without it all are "
        "locked; the first users: jobs lose the rights of nodes in AWS, and get those of their users",
        is_compared=False,
    )
    directory: str | None = flag(
        None,
        is_file=True,
        example="directory.yaml",
        description="File of an LDAP directory or Active Directory that exists, whose users the cluster "
        "gets in place of `users` (docs/how-to/users.md). Default: none.",
        on_change="stops compute and login nodes (on_busy); the head node asks the new directory",
        is_compared=False,
    )
    flags: str | None = flag(
        None,
        is_file=True,
        example="prod.yaml",
        description="File of flags for one cluster, a line `flag: value` each (docs/how-to/operate.md). A "
        "flag of the command line or of cdk.json is used instead of the file's.",
        on_change="as each flag of the file",
        is_compared=False,
        is_remembered=False,
    )
    cluster_name: str = flag(
        DEFAULT_CLUSTER,
        pattern=r"^[a-zA-Z][a-zA-Z0-9-]{0,59}$",
        takes="a letter, then letters, digits and hyphens, lower-case, 60 at most; not slurm-...",
        example="my-team",
        description="Name of the cluster. Another name is another cluster on the same network and storage.",
        on_change="another stack, with a cluster of its own; this one is not touched. From `training`, the "
        "default of earlier releases, to the default or back: refused by the guard; trainctl deploy keeps it",
    )
    on_busy: Literal["fail", "drain", "stop"] = flag(
        "fail",
        description="What an update does if running compute nodes have to stop for it: fail and change "
        "nothing; drain them, where ParallelCluster can: their jobs end first; stop the fleet and its "
        "jobs, update, start it again. A fleet without running nodes is always stopped and started.",
        on_change="live: how the next update treats nodes that run",
        is_compared=False,
        is_remembered=False,
    )
    pcluster_version: str = flag(
        PCLUSTER_VERSION,
        takes=PCLUSTER_VERSION,
        description="ParallelCluster's version, for which this app is made. A newer one "
        "is a newer release of this app, and a new cluster on the same storage.",
        on_change="refused at synth: a newer one is a newer release of this app, and a second cluster",
    )
    layer: Literal["hosted", "build"] = flag(
        "hosted",
        description="The Lambda layer with the ParallelCluster library: hosted, AWS's own for this version; "
        "build, of this app's locked packages, as `make layer` builds it.",
        on_change="live: the provider's functions get another layer",
    )

    @field_validator("pcluster_version")
    @classmethod
    def _is_ours(cls, value: str) -> str:
        if value != PCLUSTER_VERSION:
            raise ValueError("the schema, the library and the images of this release are another version's")
        return value

    @field_validator("cluster_name")
    @classmethod
    def _not_a_stack(cls, value: str) -> str:
        if is_taken(value):
            raise ValueError("that is the name of another stack of this app")
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
