"""Pure renderers of the parts of a cluster config that head, login and compute nodes share."""

from collections.abc import Mapping
from typing import Any

from training_cluster.cluster.resource_ids import ResourceIds
from training_cluster.overrides.merge import scripts_of
from training_cluster.queues.queue import OFFICIAL

Rendered = dict[str, Any]

BUNDLE_ARGUMENT = "bundle-sha256="
"""Prefix of the checksum that bootstrap.sh looks for in the cluster config."""

USERS_ARGUMENT = "users-role="
"""Prefix of the argument with the role of the people who share the cluster."""

USERS_PREFIX = "users"
"""Folder of the bucket with a folder of each user, to which the user's jobs write."""

LARGEST_VOLUME_GIB = 16_384
"""Largest root volume that the flags take; any image fits."""


def bootstrap_prefix(cluster_name: str) -> str:
    """Return the key prefix of a cluster's scripts in the bucket."""
    return f"bootstrap/{cluster_name}"


def scripts_url(cluster_name: str, ids: ResourceIds) -> str:
    """Return the URL of a cluster's scripts in the bucket."""
    return f"s3://{ids.bucket_name}/{bootstrap_prefix(cluster_name)}"


def bootstrap_action(cluster_name: str, ids: ResourceIds, *extra_args: str) -> Rendered:
    """Render the custom action that runs bootstrap.sh from the bucket."""
    source = scripts_url(cluster_name, ids)
    return {"Script": f"{source}/bootstrap.sh", "Args": [source, *extra_args]}


def managed_policies(ids: ResourceIds, *more_policies: str) -> list[Rendered]:
    """Render a node's policies in addition to ParallelCluster's own: ours, then the user's.

    People connect through Session Manager: no inbound SSH rule exists by default.
    """
    return [{"Policy": arn} for arn in (ids.nodes_policy_arn, *more_policies, *ids.own_policy_arns)]


def iam(cluster_name: str, ids: ResourceIds, *more_policies: str) -> Rendered:
    """Render the rights of head and compute nodes: this cluster's scripts, Session Manager, and more."""
    return {
        "S3Access": [{"BucketName": ids.bucket_name, "KeyName": f"{bootstrap_prefix(cluster_name)}/*"}],
        "AdditionalIamPolicies": managed_policies(ids, *more_policies),
    }


def own_images(config: Rendered, *, built: str | None = None) -> dict[str, int]:
    """Return the custom AMIs of a final config's nodes, each with the smallest root volume for it, in GiB.

    Args:
        built: id that stands for an image which the deploy builds; a token needs none.
    """
    images = root_volumes(config).items()
    return {image: gib for image, gib in images if image.startswith("ami-") and image != built}


def root_volumes(config: Rendered) -> dict[str, int]:
    """Return the smallest root volume, in GiB, for each image of a final config's nodes, and for OFFICIAL."""
    queues = config["Scheduling"]["SlurmQueues"]
    nodes = [(config["HeadNode"], config["HeadNode"].get("LocalStorage"))]
    nodes += [(queue, (queue.get("ComputeSettings") or {}).get("LocalStorage")) for queue in queues]
    # The image decides the size of a login node's root volume.
    nodes += [(pool, None) for pool in login_pools(config)]
    found: dict[str, int] = {}
    for node, storage in nodes:
        image = str((node.get("Image") or {}).get("CustomAmi", OFFICIAL))
        size = int(((storage or {}).get("RootVolume") or {}).get("Size") or LARGEST_VOLUME_GIB)
        found[image] = min(size, found.get(image, size))
    return found


def has_accounting(config: Mapping[str, Any]) -> bool:
    """Return True if a final config has Slurm's accounting: a database, or a slurmdbd elsewhere."""
    return any(config["Scheduling"]["SlurmSettings"].get(key) for key in ("Database", "ExternalSlurmdbd"))


def has_users(config: Mapping[str, Any]) -> bool:
    """Return True if several people share the cluster of a final config."""
    actions = scripts_of(config["HeadNode"]["CustomActions"]["OnNodeUpdated"])
    return any(arg.startswith(USERS_ARGUMENT) for each in actions for arg in each.get("Args", ()))


def login_pools(config: Rendered) -> list[Rendered]:
    """Return the pools of login nodes of a final cluster config."""
    return list((config.get("LoginNodes") or {}).get("Pools", []))


def root_volume(size_gib: int) -> Rendered:
    """Render an encrypted gp3 root volume."""
    return {"RootVolume": {"Size": size_gib, "VolumeType": "gp3", "Encrypted": True}}
