"""Pure renderer of the queues: Slurm partitions with their compute resources."""

from training_cluster.cluster.nodes import Rendered, bootstrap_action, iam, root_volume
from training_cluster.cluster.resource_ids import ResourceIds
from training_cluster.queues.queue import (
    BUILD,
    OFF,
    OFFICIAL,
    ON,
    ONE_USER,
    NodeType,
    Queue,
    ResourceEntry,
    node_types,
)

_CAPACITY_TYPES = {
    "ondemand": "ONDEMAND",
    "spot": "SPOT",
    "reservation": "ONDEMAND",
    "capacity-block": "CAPACITY_BLOCK",
}
DEFAULT_SCRATCH = "/scratch"
"""ParallelCluster's DEFAULT_EPHEMERAL_DIR (pcluster/constants.py, 3.16.1)."""
THREADS = "ThreadsPerCore"
"""Setting of a node in slurm.conf."""
WEIGHTS = "TRESBillingWeights"
"""Setting of a partition in slurm.conf."""


def render_queue(queue: Queue, *, cluster_name: str, ids: ResourceIds, has_users: bool = False) -> Rendered:
    """Render one entry of Scheduling.SlurmQueues.

    Args:
        has_users: True for several users: a node runs jobs of one at a time, unless the queue is shared.
    """
    local_storage = root_volume(queue.volume_gib)
    if any(each.size.nvme_gb for each in queue.types):
        # The default, stated: to leave it out of an existing cluster's config would be a change of its nodes.
        local_storage["EphemeralVolume"] = {"MountDir": DEFAULT_SCRATCH}
    rendered: Rendered = {
        "Name": queue.name,
        "CapacityType": _CAPACITY_TYPES[queue.capacity_type],
        "Networking": _networking(queue, ids),
        "ComputeSettings": {"LocalStorage": local_storage},
        "Iam": iam(cluster_name, ids, ids.datasets_policy_arn),
        "CustomActions": {"OnNodeConfigured": bootstrap_action(cluster_name, ids)},
        "ComputeResources": [_compute_resource(queue, each) for each in queue.resources],
    }
    if queue.allocation_strategy:
        rendered["AllocationStrategy"] = queue.allocation_strategy
    partition = dict(queue.partition)
    if has_users:
        partition[ONE_USER] = "NO" if queue.shared else "YES"
    if queue.shared:
        # ParallelCluster replaces running nodes whose tag changes: slurmd is protected from its start alone
        # (76-share-nodes.sh), and a job that runs would have no private folders for its next step.
        rendered["Tags"] = [{"Key": "training-cluster:shared", "Value": "yes"}]
    if partition:
        rendered["CustomSlurmSettings"] = partition
    if queue.exclusive:
        rendered["JobExclusiveAllocation"] = True
    if queue.reservation_id:
        rendered["CapacityReservationTarget"] = _target(queue.reservation_id)
    if image := _image(queue, ids):
        # Set on the queue, never on the cluster: only a queue's image can change during a cluster's life.
        rendered["Image"] = {"CustomAmi": image}
    return rendered


def _target(reservation: str) -> Rendered:
    is_group = reservation.startswith("arn:")
    return {"CapacityReservationResourceGroupArn" if is_group else "CapacityReservationId": reservation}


def _image(queue: Queue, ids: ResourceIds) -> str | None:
    if queue.image == OFFICIAL:
        return None
    return ids.image_id if queue.image == BUILD else queue.image


def _networking(queue: Queue, ids: ResourceIds) -> Rendered:
    # EFA needs a single, private subnet.
    networking: Rendered = {
        "SubnetIds": list(queue.subnet_ids) or [ids.private_subnet_id],
        "SecurityGroups": [ids.node_security_group_id],
    }
    if queue.wants_new_placement_group:
        networking["PlacementGroup"] = {"Enabled": True, "Name": ids.new_placement_group(queue.name)}
    elif queue.named_placement_group:
        networking["PlacementGroup"] = {"Enabled": True, "Name": queue.named_placement_group}
    elif queue.has_efa:
        # ParallelCluster requires a value with EFA.
        networking["PlacementGroup"] = {"Enabled": False}
    return networking


def types_of(resource: Rendered) -> tuple[NodeType, ...]:
    """Return the instance types of a rendered compute resource, with the catalog's facts."""
    several = [each["InstanceType"] for each in resource.get("Instances", ())]
    return node_types(several or [resource["InstanceType"]])


def capacity_of(queue: Rendered, resource: Rendered | None = None) -> str:
    """Return the purchase option of a rendered queue, or of one resource of it, in the flags' words."""
    if queue["CapacityType"] == "ONDEMAND":
        is_reserved = "CapacityReservationTarget" in {**queue, **(resource or {})}
        return "reservation" if is_reserved else "ondemand"
    return next(word for word, type_ in _CAPACITY_TYPES.items() if type_ == queue["CapacityType"])


def scratch_of(queue: Rendered) -> str | None:
    """Return the folder of the local NVMe disks of a rendered queue; None if a node may have none."""
    if not all(each.size.nvme_gb for resource in queue["ComputeResources"] for each in types_of(resource)):
        return None
    storage = (queue.get("ComputeSettings") or {}).get("LocalStorage") or {}
    folder = (storage.get("EphemeralVolume") or {}).get("MountDir", DEFAULT_SCRATCH)
    return "/" + str(folder).strip("/")


def bill_accelerators(queues: list[Rendered]) -> None:
    """Let Slurm bill a job for its nodes' accelerators, if the cluster has any, instead of for its CPUs.

    A limit of gres/gpu would not hold: at a job's start it counts only the GPUs that the job requests
    (select_nodes in Slurm's node_scheduler.c), and a job that takes whole nodes requests none.
    """
    counts = [
        max(each.size.accelerators for resource in queue["ComputeResources"] for each in types_of(resource))
        for queue in queues
    ]
    for queue, count in zip(queues, counts, strict=True):
        settings = queue.get("CustomSlurmSettings", {})
        if any(counts) and WEIGHTS.lower() not in {key.lower() for key in settings}:
            queue["CustomSlurmSettings"] = {WEIGHTS: f"Node={count}"} | settings


def with_single_threads(config: Rendered) -> Rendered:
    """Return a config whose slurm.conf counts one thread a core where simultaneous multithreading is off."""
    for queue in config["Scheduling"]["SlurmQueues"]:
        for resource in queue["ComputeResources"]:
            slurm = resource.get("CustomSlurmSettings") or {}
            if resource.get("DisableSimultaneousMultithreading") and THREADS in slurm:
                resource["CustomSlurmSettings"] = {**slurm, THREADS: 1}
    return config


def _compute_resource(queue: Queue, resource: ResourceEntry) -> Rendered:
    size = resource.types[0].size
    types = [{"InstanceType": each.name} for each in resource.types]
    rendered: Rendered = {
        "Name": resource.name,
        # ParallelCluster takes several subnets only with a list of types.
        **({"Instances": types} if len(types) > 1 or len(queue.subnet_ids) > 1 else types[0]),
        "MinCount": queue.least(resource),
        "MaxCount": resource.nodes,
        "Efa": {"Enabled": resource.has_efa},
    }
    if resource.reservation:
        rendered["CapacityReservationTarget"] = _target(resource.reservation)
    if group := resource.own_placement_group:
        # With `on` ParallelCluster makes a group for this compute resource.
        own = {"Enabled": group == ON} if group in {ON, OFF} else {"Enabled": True, "Name": group}
        rendered["Networking"] = {"PlacementGroup": own}
    if queue.tells_slurm_topology and size.sockets and size.cores_per_socket:
        rendered["CustomSlurmSettings"] = {
            "Sockets": size.sockets,
            "CoresPerSocket": size.cores_per_socket,
            THREADS: size.threads_per_core,
        }
    return rendered
