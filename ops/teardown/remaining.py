"""Types of the resources that outlive their stacks, for existing and for deleted stacks."""

from dataclasses import dataclass, field

from ops.account.stacks import Resource


@dataclass(frozen=True, kw_only=True)
class Link:
    """A data repository association."""

    id: str
    folder: str
    target: str
    """Path in the bucket."""
    exports: bool
    """True if files that are written to the folder are exported to the bucket."""


@dataclass(frozen=True, kw_only=True)
class Lustre:
    """An FSx for Lustre file system."""

    id: str
    deployment_type: str
    capacity_gib: int
    mbps_per_tib: int | None
    links: tuple[Link, ...]


@dataclass(frozen=True, kw_only=True)
class Efs:
    """An EFS file system."""

    id: str
    size_bytes: int
    provisioned_mibps: float | None
    mount_target_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Ami:
    """An image of nodes."""

    id: str
    name: str
    snapshot_ids: tuple[str, ...]
    gib: float
    """Size of the snapshots; size of their volumes if EC2 does not report it."""
    is_whole_volume: bool
    """True if `gib` is the size of the volumes, of which only written blocks are stored."""
    users: tuple[str, ...]
    """Launch templates with this AMI; each queue of a cluster has one."""


@dataclass(frozen=True, kw_only=True)
class RemainingImages:
    """Resources that no ImageStack deletes."""

    amis: tuple[Ami, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    """Name of each parameter, and the AMI that it names."""
    builds: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    """ARNs of Image Builder's components."""

    @property
    def used(self) -> set[str]:
        """Ids of the AMIs with launch templates."""
        return {ami.id for ami in self.amis if ami.users}


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """Resources of Training Cluster that no stack deletes."""

    lustre: tuple[Lustre, ...] = ()
    efs: tuple[Efs, ...] = ()
    buckets: tuple[str, ...] = ()
    accounting: tuple[Resource, ...] = ()
    """Resources of AccountingStack."""
    databases: tuple[str, ...] = ()
    """Host and port of each database, if AccountingStack is deleted."""
    images: RemainingImages = field(default_factory=RemainingImages)
    groups: tuple[str, ...] = ()
    """Security groups of the file systems."""
    log_groups: tuple[str, ...] = ()
    """Log groups of the cluster, and of our stacks."""
    pcluster_log_groups: tuple[str, ...] = ()
    """Log groups of ParallelCluster's functions, which do not name their cluster."""
    parameters: tuple[str, ...] = ()
    pcluster_buckets: tuple[str, ...] = ()
