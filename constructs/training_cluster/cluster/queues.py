"""Pure renderer of the queues: Slurm partitions with one compute resource each."""

from __future__ import annotations

from dataclasses import dataclass

from training_cluster.catalog.families import load_base
from training_cluster.catalog.family import CapacityType, Size
from training_cluster.cluster.nodes import Rendered, bootstrap_action, iam, root_volume
from training_cluster.cluster.resource_ids import ResourceIds
from training_cluster.flags.settings import Settings

_CAPACITY_TYPES = {
    "ondemand": "ONDEMAND",
    "spot": "SPOT",
    "reservation": "ONDEMAND",
    "capacity-block": "CAPACITY_BLOCK",
}


@dataclass(frozen=True, kw_only=True)
class Queue:
    """One Slurm partition with one compute resource."""

    name: str
    compute_resource: str
    cluster_name: str
    instance_type: str
    size: Size
    min_count: int
    max_count: int
    capacity_type: CapacityType
    reservation_id: str | None
    root_gib: int
    scratch: str | None
    placement_group: str | None
    image_id: str | None
    tell_slurm_topology: bool = False


def queues(settings: Settings, ids: ResourceIds) -> list[Queue]:
    """Return the queues of the settings; the first is the default partition."""
    family, base = settings.family_facts, load_base()
    new_group = settings.wants_new_placement_group
    found = [
        Queue(
            name=family.queue,
            compute_resource=family.name,
            cluster_name=settings.cluster_name,
            instance_type=settings.compute_type,
            size=settings.size,
            min_count=settings.static_nodes,
            max_count=settings.nodes,
            capacity_type=settings.capacity_type,
            reservation_id=settings.reservation_id,
            root_gib=family.compute_root_gib,
            scratch=family.scratch,
            placement_group=ids.placement_group_name if new_group else settings.named_placement_group,
            image_id=ids.image_id if settings.node_image != "official" else None,
            tell_slurm_topology=family.slurm_topology is not None,
        )
    ]
    cpu_type, beside = settings.cpu_queue_type, settings.cpu_queue_facts
    if cpu_type and beside:
        cpu_family, cpu_size = beside
        found.append(
            Queue(
                name=base.cpu_queue.name,
                compute_resource=cpu_type.replace(".", "-"),
                cluster_name=settings.cluster_name,
                instance_type=cpu_type,
                size=cpu_size,
                min_count=0,
                max_count=base.cpu_queue.nodes,
                capacity_type="ondemand",
                reservation_id=None,
                root_gib=base.cpu_queue.root_gib,
                scratch=cpu_family.scratch,
                # Data preparation runs on single nodes: placed close together they are only harder to get.
                placement_group=None,
                image_id=None,
            )
        )
    return found


def render_queue(queue: Queue, *, ids: ResourceIds) -> Rendered:
    """Render one entry of Scheduling.SlurmQueues."""
    local_storage = root_volume(queue.root_gib)
    if queue.scratch and queue.size.nvme_gb:
        local_storage["EphemeralVolume"] = {"MountDir": queue.scratch}
    rendered: Rendered = {
        "Name": queue.name,
        "CapacityType": _CAPACITY_TYPES[queue.capacity_type],
        "Networking": _networking(queue, ids),
        "ComputeSettings": {"LocalStorage": local_storage},
        "Iam": iam(queue.cluster_name, ids, ids.datasets_policy_arn),
        "CustomActions": {"OnNodeConfigured": bootstrap_action(queue.cluster_name, ids)},
        "ComputeResources": [_compute_resource(queue)],
    }
    if queue.reservation_id:
        rendered["CapacityReservationTarget"] = {"CapacityReservationId": queue.reservation_id}
    if queue.image_id:
        # Set on the queue, never on the cluster: only a queue's image can change during a cluster's life.
        rendered["Image"] = {"CustomAmi": queue.image_id}
    return rendered


def _networking(queue: Queue, ids: ResourceIds) -> Rendered:
    # EFA needs a single, private subnet.
    networking: Rendered = {
        "SubnetIds": [ids.private_subnet_id],
        "SecurityGroups": [ids.node_security_group_id],
    }
    if queue.placement_group:
        networking["PlacementGroup"] = {"Enabled": True, "Name": queue.placement_group}
    elif queue.size.efa:
        # ParallelCluster requires a value with EFA.
        networking["PlacementGroup"] = {"Enabled": False}
    return networking


def _compute_resource(queue: Queue) -> Rendered:
    size = queue.size
    rendered: Rendered = {
        "Name": queue.compute_resource,
        "InstanceType": queue.instance_type,
        "MinCount": queue.min_count,
        "MaxCount": queue.max_count,
        "Efa": {"Enabled": size.efa},
    }
    if queue.tell_slurm_topology and size.sockets and size.cores_per_socket:
        rendered["CustomSlurmSettings"] = {
            "Sockets": size.sockets,
            "CoresPerSocket": size.cores_per_socket,
            "ThreadsPerCore": size.threads_per_core,
        }
    return rendered
