"""Typed answers of ParallelCluster's library, without an import of the library itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class ClusterState:
    """The part of `pcluster describe-cluster` that the provider needs."""

    status: str
    """clusterStatus: CREATE_COMPLETE, UPDATE_FAILED ..."""
    tags: dict[str, str]
    failures: tuple[dict[str, Any], ...]
    """failureCode and failureReason; only at CREATE_FAILED."""
    head_node_instance_id: str | None
    stack_status: str
    """Status of the cluster's CloudFormation stack."""
    created: str
    """Creation time of the stack: distinguishes the cluster from a later one of the same name."""
    changed: str
    """Time of the stack's last creation or update."""

    @property
    def is_changing(self) -> bool:
        """True while CloudFormation creates, updates or deletes the cluster's stack."""
        return self.status.endswith("_IN_PROGRESS")


@dataclass(frozen=True, kw_only=True)
class DryRun:
    """Result of a dry run that passed."""

    validation: tuple[str, ...]
    """Warnings and notes of the library's validators."""
    changes: tuple[str, ...]
    """Changes of an update, each as `parameter: old -> new`."""
