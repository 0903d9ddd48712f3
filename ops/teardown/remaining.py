"""What there is in the account of ours that outlives its stack, whether the stack is there or not."""

from __future__ import annotations

from dataclasses import dataclass, field

from ops.account.stacks import Resource


@dataclass(frozen=True, kw_only=True)
class Link:
    """A data repository association."""

    id: str
    folder: str
    target: str
    """Where in the bucket."""
    exports: bool
    """Whether what is written to the folder goes to the bucket."""


@dataclass(frozen=True, kw_only=True)
class Lustre:
    """A Lustre file system."""

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
    """One image of nodes."""

    id: str
    name: str
    snapshot_ids: tuple[str, ...]
    gib: float
    """That its snapshots store; of their volumes where EC2 does not say more."""
    is_whole_volume: bool
    """Whether that is the volumes' size, of which only what was written is stored."""
    users: tuple[str, ...]
    """Launch templates that start instances from it, as each queue of a ParallelCluster has one."""


@dataclass(frozen=True, kw_only=True)
class RemainingImages:
    """Everything that no ImageStack deletes."""

    amis: tuple[Ami, ...] = ()
    parameters: tuple[tuple[str, str], ...] = ()
    """Name of each, and the AMI that it names."""
    builds: tuple[str, ...] = ()
    recipes: tuple[str, ...] = ()
    components: tuple[str, ...] = ()
    """ARNs, of Image Builder."""

    @property
    def used(self) -> set[str]:
        """AMIs that something starts instances from."""
        return {ami.id for ami in self.amis if ami.users}


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """Everything of ours that no stack deletes."""

    lustre: tuple[Lustre, ...] = ()
    efs: tuple[Efs, ...] = ()
    buckets: tuple[str, ...] = ()
    accounting: tuple[Resource, ...] = ()
    """Of AccountingStack."""
    databases: tuple[str, ...] = ()
    """Host and port of each of its databases, when it is gone."""
    images: RemainingImages = field(default_factory=RemainingImages)
    groups: tuple[str, ...] = ()
    """Security groups of the file systems."""
    log_groups: tuple[str, ...] = ()
    """Of the cluster, and of our stacks."""
    pcluster_log_groups: tuple[str, ...] = ()
    """Of ParallelCluster's functions; which cluster they were of, they do not say."""
    parameters: tuple[str, ...] = ()
    pcluster_buckets: tuple[str, ...] = ()
