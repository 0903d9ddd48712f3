"""Every context flag of the app: typed, described, checked one by one (rules.py: against each other)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from training_cluster.account_flags import AccountFlags, parse_tags
from training_cluster.cluster_flags import NO_WORKLOADS, ClusterFlags
from training_cluster.families import find_instance_type, load_base, load_family
from training_cluster.flags import explain, explain_contradictions
from training_cluster.hardware import CapacityKind, Family, Size
from training_cluster.network_flags import NetworkFlags
from training_cluster.problems import ConfigurationError, Contradiction
from training_cluster.rules import contradictions
from training_cluster.stack_names import cluster_stack
from training_cluster.storage_flags import StorageFlags
from training_cluster.workloads import workloads_of

FLAG_GROUPS: dict[str, type[BaseModel]] = {
    "Cluster": ClusterFlags,
    "Network": NetworkFlags,
    "Storage": StorageFlags,
    "Account": AccountFlags,
}

CDKS_BOUNDARY = "@aws-cdk/core:permissionsBoundary"
"""The CDK's own context key: a policy's name or ARN, which the CDK gives to the roles of its stacks."""


@dataclass(frozen=True)
class Capacity:
    """How nodes are bought."""

    kind: CapacityKind
    reservation_id: str | None = None
    """Of a reservation or a Capacity Block: cr-..."""


class Settings(AccountFlags, StorageFlags, NetworkFlags, ClusterFlags):
    """The app's public interface: `cdk deploy TrainingClusterStack -c flag=value`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

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
    def cpu_queue_facts(self) -> tuple[Family, Size] | None:
        """The catalog's facts of that type; rules.py refuses types that it does not have."""
        return find_instance_type(self.cpu_queue_type) if self.cpu_queue_type else None

    @property
    def most_nodes(self) -> int:
        """Most compute nodes of all queues together."""
        return self.nodes + (load_base().cpu_queue.nodes if self.cpu_queue_type else 0)

    @property
    def wants_new_placement_group(self) -> bool:
        """Whether the queue gets a placement group of its own; its capacity and EFA decide."""
        return self.placement_group == "auto" and self.size.efa and self.bought.reservation_id is None

    @property
    def system(self) -> str:
        """Operating system of all nodes: what was asked for, else the family's."""
        return self.os or self.family_facts.os

    @property
    def node_workloads(self) -> tuple[str, ...]:
        """Workloads whose environments nodes are made with; the others' are made at their first job."""
        if self.workloads is not None:
            return () if self.workloads == NO_WORKLOADS else tuple(sorted(set(self.workloads.split(","))))
        return workloads_of(self.family_facts.image_recipe) if self.node_image == "build" else ()

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
    def instance_types(self) -> list[str]:
        """All that a cluster uses, sorted: its zone has to offer every one."""
        base = load_base()
        login = base.login_node.instance_type if self.login_nodes else None
        builds = base.image_recipes[self.family_facts.image_recipe].build_instance_type
        used = {self.compute_type, self.head_type, self.cpu_queue_type, login}
        used |= {builds} if self.node_image == "build" else set()
        return sorted(each for each in used if each)

    @property
    def own_tags(self) -> dict[str, str]:
        """`tags`, taken apart."""
        return parse_tags(self.tags) if self.tags else {}

    @property
    def stack_name(self) -> str:
        """CloudFormation name of TrainingClusterStack for this cluster."""
        return cluster_stack(self.cluster_name)

    @classmethod
    def from_context(cls, context: Mapping[str, Any]) -> Settings:
        """Read the flags out of the CDK context; keys with ':' or a leading '@' are CDK's own.

        Raises:
            ConfigurationError: an unknown flag, a wrong value, or values that contradict each other.
        """
        flags = {k: v for k, v in context.items() if ":" not in k and not k.startswith("@")}
        if context.get(CDKS_BOUNDARY) and "permissions_boundary" not in flags:
            raise ConfigurationError(explain_contradictions([_boundary_of_the_app_alone(context)]))
        try:
            settings = cls(**flags)
        except ValidationError as error:
            raise ConfigurationError(explain(error, cls.model_fields)) from None
        if found := contradictions(settings):
            raise ConfigurationError(explain_contradictions(found))
        return settings


def _boundary_of_the_app_alone(context: Mapping[str, Any]) -> Contradiction:
    """Say that the roles of the cluster would be made without the boundary, and what to type."""
    given = context[CDKS_BOUNDARY]
    arn = str(given.get("arn") or "") if isinstance(given, Mapping) else ""
    if not arn or "${" in arn:  # a shell would empty the CDK's placeholders
        arn = "arn:aws:iam::ACCOUNT:policy/NAME"
    return Contradiction(
        problem=f"{CDKS_BOUNDARY} bounds the roles of this app, not the roles that ParallelCluster makes",
        mend=f"-c permissions_boundary={arn} (the policy's ARN). A cluster that was created without the flag "
        f"takes none: -c '{CDKS_BOUNDARY}=' updates it, and the app's roles lose the boundary; or create a "
        "second cluster with the flag and another cluster_name",
    )
