"""Context flags of the app, each checked by itself; rules/ checks them against each other."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from training_cluster.catalog.families import find_instance_type, load_base, load_family
from training_cluster.catalog.family import CapacityType, Family, Size
from training_cluster.catalog.workloads import workloads_of
from training_cluster.flags.account import AccountFlags, parse_tags, split_list
from training_cluster.flags.cluster import ClusterFlags
from training_cluster.flags.compute import NO_WORKLOADS, ComputeFlags
from training_cluster.flags.network import NetworkFlags
from training_cluster.flags.storage import StorageFlags
from training_cluster.stack_names import cluster_stack

FLAG_GROUPS: dict[str, type[BaseModel]] = {
    "Compute nodes": ComputeFlags,
    "Cluster": ClusterFlags,
    "Network": NetworkFlags,
    "Storage": StorageFlags,
    "Account": AccountFlags,
}


class Settings(AccountFlags, StorageFlags, NetworkFlags, ClusterFlags, ComputeFlags):
    """The app's public interface: `cdk deploy TrainingClusterStack -c flag=value`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @property
    def family_facts(self) -> Family:
        """Catalog's entry of the chosen family."""
        return load_family(self.family)

    @property
    def compute_type(self) -> str:
        """Instance type of the compute nodes."""
        return self.instance_type or self.family_facts.main_size

    @property
    def size(self) -> Size:
        """Catalog's facts of the compute nodes' instance type."""
        return self.family_facts.size(self.compute_type)

    @property
    def capacity_type(self) -> CapacityType:
        """Purchase option of the compute nodes: `capacity` without a reservation's id."""
        return self.capacity.partition(":")[0]  # type: ignore[return-value]  # the pattern allows no other

    @property
    def reservation_id(self) -> str | None:
        """Id of the capacity reservation or Capacity Block in `capacity` (cr-...); None without one."""
        return self.capacity.partition(":")[2] or None

    @property
    def static_nodes(self) -> int:
        """Nodes that always run: all of a Capacity Block, else `min_nodes`."""
        return self.nodes if self.capacity_type == "capacity-block" else self.min_nodes

    @property
    def cpu_queue_facts(self) -> tuple[Family, Size] | None:
        """Catalog's facts of the CPU queue's instance type; the rules refuse types that it lacks."""
        return find_instance_type(self.cpu_queue_type) if self.cpu_queue_type else None

    @property
    def most_nodes(self) -> int:
        """Largest number of compute nodes, of all queues together."""
        return self.nodes + (load_base().cpu_queue.nodes if self.cpu_queue_type else 0)

    @property
    def named_placement_group(self) -> str | None:
        """Name of the user's own placement group, if the flag gives one."""
        return None if self.placement_group in {"auto", "off"} else self.placement_group

    @property
    def wants_new_placement_group(self) -> bool:
        """True when the queue gets a new placement group; its capacity and EFA decide."""
        return self.placement_group == "auto" and self.size.efa and self.reservation_id is None

    @property
    def os_name(self) -> str:
        """Operating system of all nodes: the flag's, else the family's."""
        return self.os or self.family_facts.os

    @property
    def node_workloads(self) -> tuple[str, ...]:
        """Workloads whose environments exist on new nodes; a first job makes those of the others."""
        if self.workloads is not None:
            return () if self.workloads == NO_WORKLOADS else tuple(sorted(set(self.workloads.split(","))))
        return workloads_of(self.family_facts.image_recipe) if self.node_image == "build" else ()

    @property
    def node_image(self) -> str:
        """Source of the compute nodes' image (official, build or ami-...): the flag's, else the family's."""
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
        """Instance types of the whole cluster, sorted: its zone has to offer every one."""
        base = load_base()
        login = base.login_node.instance_type if self.login_nodes else None
        builds = base.image_recipes[self.family_facts.image_recipe].build_instance_type
        used = {self.compute_type, self.head_type, self.cpu_queue_type, login}
        used |= {builds} if self.node_image == "build" else set()
        return sorted(each for each in used if each)

    @property
    def own_tags(self) -> dict[str, str]:
        """Keys and values of `tags`."""
        return parse_tags(self.tags) if self.tags else {}

    @property
    def own_policies(self) -> tuple[str, ...]:
        """ARNs of `node_policies`."""
        return split_list(self.node_policies)

    @property
    def readable_buckets(self) -> tuple[str, ...]:
        """Entries of `read_buckets` and `write_buckets`: BUCKET or BUCKET/PREFIX."""
        return tuple(dict.fromkeys([*split_list(self.read_buckets), *self.writable_buckets]))

    @property
    def writable_buckets(self) -> tuple[str, ...]:
        """Entries of `write_buckets`: BUCKET or BUCKET/PREFIX."""
        return split_list(self.write_buckets)

    @property
    def stack_name(self) -> str:
        """CloudFormation name of TrainingClusterStack for this cluster."""
        return cluster_stack(self.cluster_name)
