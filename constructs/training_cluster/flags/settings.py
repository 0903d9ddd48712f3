"""Context flags of the app, each checked by itself; rules/ checks them against each other."""

from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

from training_cluster.catalog.families import find_instance_type, load_base, load_family
from training_cluster.catalog.family import Family, Size
from training_cluster.catalog.workloads import workloads_of
from training_cluster.flags.account import AccountFlags, parse_tags, split_list
from training_cluster.flags.cluster import ClusterFlags
from training_cluster.flags.compute import NO_WORKLOADS, ComputeFlags
from training_cluster.flags.monitoring import MonitoringFlags
from training_cluster.flags.network import INTERFACE_ENDPOINTS, METRICS_ENDPOINT, NetworkFlags
from training_cluster.flags.storage import StorageFlags
from training_cluster.flags.tuning import TuningFlags
from training_cluster.queues.file import cpu_queue, flags_of_file, read_queues
from training_cluster.queues.queue import Queue, QueueEntry, ResourceEntry, make_queue
from training_cluster.stack_names import cluster_stack, new_key_pair

FLAG_GROUPS: dict[str, type[BaseModel]] = {
    "Compute nodes": ComputeFlags,
    "Cluster": ClusterFlags,
    "Tuning": TuningFlags,
    "Network": NetworkFlags,
    "Storage": StorageFlags,
    "Monitoring": MonitoringFlags,
    "Account": AccountFlags,
}


class Settings(
    AccountFlags, MonitoringFlags, StorageFlags, NetworkFlags, TuningFlags, ClusterFlags, ComputeFlags
):
    """The app's public interface: `cdk deploy TrainingClusterStack -c flag=value`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _complete(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Take flags that are not given from the queue of the file that `queue_name` names, or the type.

        An empty value is the default. Unlike a flag that is left out, it may replace the last deploy's.
        """
        given = {flag: cls._default(flag) if value == "" else value for flag, value in given.items()}
        given = {**flags_of_file(given.get("queues"), given.get("queue_name")), **given}
        if given.get("family") is None and (found := find_instance_type(str(given.get("instance_type")))):
            given = {**given, "family": found[0].name}
        return given

    @classmethod
    def _default(cls, flag: str) -> Any:
        return cls.model_fields[flag].default if flag in cls.model_fields else ""

    @property
    def asked_flags(self) -> set[str]:
        """Flags with another value than their default, which a deploy may give to drop the last one's."""
        return set(self.model_dump(exclude_defaults=True))

    @property
    def has_users(self) -> bool:
        """True if the cluster has users of a file or a directory in addition to its own."""
        return bool(self.users or self.directory)

    @property
    def family_facts(self) -> Family:
        """Catalog's entry of the chosen family."""
        found = find_instance_type(self.instance_type) if self.instance_type else None
        return found[0] if found and found[0].name == self.family else load_family(self.family)

    @property
    def compute_type(self) -> str:
        """Instance type of the compute nodes."""
        return self.instance_type or self.family_facts.main_size

    @property
    def size(self) -> Size:
        """Catalog's facts of the compute nodes' instance type."""
        return self.family_facts.size(self.compute_type)

    @property
    def first_queue(self) -> Queue:
        """Default partition: the queue that the flags describe, or the file's queue with its name."""
        resource = ResourceEntry.model_construct(
            name=self.family_facts.name,
            instance_types=(self.compute_type,),
            nodes=self.nodes,
            min_nodes=self.min_nodes,
        )
        entry = QueueEntry.model_construct(
            compute_resources=(resource,),
            capacity=self.capacity,
            placement_group=self.placement_group,
            root_gib=self.compute_root_gib,
            exclusive=self.exclusive == "on",
        )
        name = self.queue_name or self.family_facts.queue
        entry = self._listed.get(str(self.queue_name), entry)
        return make_queue(name, entry, image=self.node_image, workloads=self.node_workloads)

    @property
    def all_queues(self) -> tuple[Queue, ...]:
        """All queues: the default partition, the CPU queue, the others of the file `queues`."""
        preparation = cpu_queue(self.cpu_queue_type) if self.cpu_queue_type else None
        others = (make_queue(*each) for each in self._listed.items() if each[0] != self.queue_name)
        return (self.first_queue, *([preparation] if preparation else []), *others)

    @property
    def _listed(self) -> dict[str, QueueEntry]:
        return read_queues(self.queues) if self.queues else {}

    @property
    def os_name(self) -> str:
        """Operating system of all nodes: the flag's, else the family's."""
        return self.os or self.family_facts.os

    @property
    def node_workloads(self) -> tuple[str, ...]:
        """Workloads whose environments exist on new nodes; a first job makes the other environments."""
        if self.workloads is not None:
            return () if self.workloads == NO_WORKLOADS else tuple(sorted(set(self.workloads.split(","))))
        return (
            workloads_of(self.family_facts.image_recipe, self.os_name) if self.node_image == "build" else ()
        )

    @property
    def node_image(self) -> str:
        """Source of the compute nodes' image (official, build or ami-...): the flag's, else the family's."""
        return self.image or ("build" if self.family_facts.official_image_refused else "official")

    @property
    def head_type(self) -> str:
        """Instance type of the head node."""
        return self.head_node_type or self.family_facts.head_node_type

    @property
    def login_type(self) -> str:
        """Instance type of the login nodes."""
        login = load_base().login_node
        return login.arm_instance_type if self.family_facts.architecture == "arm64" else login.instance_type

    @property
    def cpu_queue_type(self) -> str | None:
        """Instance type of the CPU queue; None without one."""
        if self.cpu_queue == "off":
            return None
        base, is_arm = load_base().cpu_queue, self.family_facts.architecture == "arm64"
        offered = base.arm_instance_type if is_arm else base.instance_type
        return offered if self.cpu_queue == "on" else self.cpu_queue

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
    def interface_endpoints(self) -> tuple[str, ...]:
        """Services with an endpoint by endpoints=private; empty without it."""
        if self.endpoints != "private":
            return ()
        return (*INTERFACE_ENDPOINTS, *([METRICS_ENDPOINT] if self.metrics == "amp" else []))

    @property
    def head_node_sends(self) -> bool:
        """True when the head node sends metrics or alerts elsewhere, for which it needs a policy."""
        targets = (self.metrics_workspace, self.alarm_email, self.alert_webhook_secret)
        return self.metrics != "cloudwatch" and any(targets)

    @property
    def stack_name(self) -> str:
        """CloudFormation name of TrainingClusterStack for this cluster."""
        return cluster_stack(self.cluster_name)

    @property
    def names(self) -> dict[str, str]:
        """Names of the account that the cluster needs, as assets/guard/names.py receives them."""
        key_pair = "" if self.key_name else new_key_pair(self.cluster_name)
        return {"Name": self.cluster_name, "Stack": self.stack_name, "KeyPair": key_pair}
