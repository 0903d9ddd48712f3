"""Pure: settings, catalog and resource ids in, a ParallelCluster 3 cluster config out.

The keys are ParallelCluster's own (`HeadNode.Networking.SubnetId` ...), so the result is the one
plain dict that crosses a module border here. Resource ids may be CDK tokens.

What a cluster can never change (head node type and volume, bootstrap script and arguments, head
node timeout) is rendered from the family and base.yaml alone, never from nodes, capacity, image or
workload; tests/unit/test_cluster_config.py renders pairs and checks that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from training_cluster.families import Base, Family, load_base
from training_cluster.settings import Settings

# Session Manager is how people get in: no inbound SSH rule exists by default.
SESSION_MANAGER_POLICY = "arn:{partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"


@dataclass(frozen=True, kw_only=True)
class ResourceIds:
    """What the cluster stands on: ids and names that other constructs made."""

    region: str
    partition: str
    public_subnet_id: str
    private_subnet_id: str
    node_security_group_id: str
    key_name: str
    file_system_id: str
    bucket_name: str
    bundle_sha256: str
    placement_group_name: str | None = None
    """Only for families with EFA."""


def render_cluster_config(*, settings: Settings, ids: ResourceIds) -> dict[str, Any]:
    """Render the whole cluster config for `pcluster.lib.create_cluster`."""
    family, base = settings.family_facts, load_base()
    return {
        "Region": ids.region,
        "Image": {"Os": settings.os},
        "Imds": {"ImdsSupport": "v2.0"},
        "HeadNode": _head_node(family=family, base=base, settings=settings, ids=ids),
        "Scheduling": {
            "Scheduler": "slurm",
            "SlurmSettings": {"ScaledownIdletime": base.scaledown_idle_min},
            "SlurmQueues": [_queue(family=family, base=base, settings=settings, ids=ids)],
        },
        "SharedStorage": [
            {
                "Name": "shared",
                "StorageType": "FsxLustre",
                "MountDir": base.shared_dir,
                "FsxLustreSettings": {"FileSystemId": ids.file_system_id},
            }
        ],
        "Monitoring": {"Logs": {"CloudWatch": {"Enabled": True, "RetentionInDays": base.log_retention_days}}},
        "DevSettings": {
            "Timeouts": {
                "HeadNodeBootstrapTimeout": base.head_node.bootstrap_timeout_s,
                "ComputeNodeBootstrapTimeout": base.compute_node.bootstrap_timeout_s,
            }
        },
        "Tags": [{"Key": "training-cluster:cluster", "Value": settings.cluster_name}],
    }


def bootstrap_prefix(cluster_name: str) -> str:
    """Key prefix in the bucket under which a cluster's scripts lie."""
    return f"bootstrap/{cluster_name}"


def _bootstrap_action(settings: Settings, ids: ResourceIds, *extra_args: str) -> dict[str, Any]:
    source = f"s3://{ids.bucket_name}/{bootstrap_prefix(settings.cluster_name)}"
    return {"Script": f"{source}/bootstrap.sh", "Args": [source, *extra_args]}


def _iam(settings: Settings, ids: ResourceIds) -> dict[str, Any]:
    prefix = bootstrap_prefix(settings.cluster_name)
    return {
        "S3Access": [{"BucketName": ids.bucket_name, "KeyName": f"{prefix}/*"}],
        "AdditionalIamPolicies": [{"Policy": SESSION_MANAGER_POLICY.format(partition=ids.partition)}],
    }


def _root_volume(size_gib: int) -> dict[str, Any]:
    return {"RootVolume": {"Size": size_gib, "VolumeType": "gp3", "Encrypted": True}}


def _head_node(*, family: Family, base: Base, settings: Settings, ids: ResourceIds) -> dict[str, Any]:
    return {
        "InstanceType": family.head_node_type,
        "Networking": {"SubnetId": ids.public_subnet_id, "SecurityGroups": [ids.node_security_group_id]},
        "Ssh": {"KeyName": ids.key_name},
        "LocalStorage": _root_volume(base.head_node.root_volume_gib),
        "Imds": {"Secured": True},
        "Iam": _iam(settings, ids),
        "CustomActions": {
            "OnNodeConfigured": _bootstrap_action(settings, ids),
            # A live change: another checksum runs the script again on the head node, nothing else.
            "OnNodeUpdated": _bootstrap_action(settings, ids, ids.bundle_sha256),
        },
    }


def _queue(*, family: Family, base: Base, settings: Settings, ids: ResourceIds) -> dict[str, Any]:
    networking: dict[str, Any] = {
        # EFA takes one subnet, and a private one.
        "SubnetIds": [ids.private_subnet_id],
        "SecurityGroups": [ids.node_security_group_id],
    }
    if family.efa:
        networking["PlacementGroup"] = {"Enabled": True, "Name": ids.placement_group_name}
    return {
        "Name": family.queue,
        "CapacityType": "ONDEMAND",
        "Networking": networking,
        "ComputeSettings": {"LocalStorage": _root_volume(base.compute_node.root_volume_gib)},
        "Iam": _iam(settings, ids),
        "CustomActions": {"OnNodeConfigured": _bootstrap_action(settings, ids)},
        "ComputeResources": [
            {
                "Name": family.name,
                "InstanceType": family.instance_type,
                "MinCount": settings.min_nodes,
                "MaxCount": settings.nodes,
                "Efa": {"Enabled": family.efa},
            }
        ],
    }
