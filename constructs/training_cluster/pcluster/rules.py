"""Rules on a rendered config that no schema can express: ParallelCluster's validators that need no AWS.

The renderer obeys them by construction; the rules find a mistake in it, or in a family's file, at synth
instead of in the cloud.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from training_cluster.cluster.nodes import has_accounting, has_users
from training_cluster.flags.account import CLUSTER_TAG
from training_cluster.overrides.nodes import nodes_of
from training_cluster.overrides.storage import managed_storage, queue_subnets
from training_cluster.pcluster.slurm_settings import YES, slurm_problems

Config = Mapping[str, Any]

MAX_QUEUES = 50
MAX_COMPUTE_RESOURCES = 50
MAX_POLICIES = 9
MAX_NAME_WITH_ACCOUNTING = 40
"""Letters of a cluster's name: the database takes it (PCLUSTER_NAME_MAX_LENGTH_SLURM_ACCOUNTING)."""
_IDS = ("FileSystemId", "VolumeId", "FileCacheId")
"""Keys of storage that exists; ParallelCluster mounts each file system once."""


def rule_problems(config: Config) -> list[str]:
    """Return one sentence a broken rule, for a config that has passed the schema."""
    queues = config["Scheduling"]["SlurmQueues"]
    found = [*_names(queues), *_mounts(config), *_one_subnet(config), *_policies(config)]
    found += [*_accounting(config), *_users(config), *slurm_problems(config)]
    for queue in queues:
        for resource in queue["ComputeResources"]:
            found += _compute_resource(queue, resource)
    return found


def _names(queues: list[Config]) -> Iterator[str]:
    resources = [resource["Name"] for queue in queues for resource in queue["ComputeResources"]]
    if len(queues) > MAX_QUEUES:
        yield f"Scheduling.SlurmQueues: {len(queues)} queues; ParallelCluster takes {MAX_QUEUES}"
    if len(resources) > MAX_COMPUTE_RESOURCES:
        yield f"{len(resources)} compute resources; a cluster takes {MAX_COMPUTE_RESOURCES}"
    for name, count in Counter(queue["Name"] for queue in queues).items():
        if count > 1:
            yield f"Scheduling.SlurmQueues: {count} queues are named {name}"
    for name in [*(queue["Name"] for queue in queues), *resources]:
        if len(name) > 25 or name == "default" or not name[:1].islower():  # noqa: PLR2004
            yield (
                f"the name {name}: a letter, then letters, digits and hyphens, 25 at most, and not `default`"
            )


def _compute_resource(queue: Config, resource: Config) -> Iterator[str]:
    at = f"queue {queue['Name']}, compute resource {resource['Name']}"
    least, most = resource.get("MinCount", 0), resource.get("MaxCount", 10)
    block = queue.get("CapacityType") == "CAPACITY_BLOCK"
    group = resource.get("Networking", {}).get("PlacementGroup", queue["Networking"].get("PlacementGroup"))
    efa = resource.get("Efa", {}).get("Enabled", False)
    if least > most:
        yield f"{at}: MinCount {least} is above MaxCount {most}"
    if block and (least != most or least == 0):
        yield f"{at}: a Capacity Block requires MinCount = MaxCount > 0, not {least} and {most}"
    if block and "CapacityReservationTarget" not in {*queue, *resource}:
        yield f"{at}: a Capacity Block requires its CapacityReservationId"
    if block and group and group.get("Enabled"):
        yield f"{at}: a Capacity Block takes no placement group"
    if efa and group is None and not block:
        yield f"{at}: EFA requires PlacementGroup.Enabled, true or false"
    if (efa or (group and group.get("Enabled"))) and len(queue["Networking"]["SubnetIds"]) > 1:
        what, off = ("EFA", "efa: false") if efa else ("a placement group", "placement_group: off")
        yield f"{at}: {what} works within one zone: one subnet, or {off} (docs/queues.md)"


def _policies(config: Config) -> Iterator[str]:
    """Check the policies of each role: IAM takes 10, and ParallelCluster adds CloudWatchAgentServerPolicy."""
    for node in nodes_of(config):
        count = len(node.get("Iam", {}).get("AdditionalIamPolicies", []))
        if count > MAX_POLICIES:
            where = node.get("Name", "HeadNode")
            yield (
                f"{where}: Iam.AdditionalIamPolicies: {count} policies, the app's included; a role takes "
                f"{MAX_POLICIES} and ParallelCluster's own: join some of your own into one"
            )


def _accounting(config: Config) -> Iterator[str]:
    """Check what the validators of ExternalSlurmdbd and ClusterNameValidator do."""
    given = config["Scheduling"]["SlurmSettings"]
    if {"Database", "ExternalSlurmdbd"} <= {*given}:
        yield (
            "Scheduling.SlurmSettings.ExternalSlurmdbd: the cluster has a Database, and takes one of them\n"
            "    type: leave out -c accounting, or ExternalSlurmdbd"
        )
    elif "ExternalSlurmdbd" in given and not given.get("MungeKeySecretArn"):
        yield (
            "Scheduling.SlurmSettings.ExternalSlurmdbd: it answers clusters with its own munge key alone\n"
            "    type: MungeKeySecretArn: the ARN of a secret that has this key in Base64"
        )
    name = next(each["Value"] for each in config["Tags"] if each["Key"] == CLUSTER_TAG)
    if has_accounting(config) and len(name) > MAX_NAME_WITH_ACCOUNTING:
        yield (
            f"cluster_name={name} has {len(name)} characters; with accounting, ParallelCluster takes "
            f"{MAX_NAME_WITH_ACCOUNTING}\n"
            f"    type: -c cluster_name={name[:MAX_NAME_WITH_ACCOUNTING].rstrip('-')}"
        )


def _users(config: Config) -> Iterator[str]:
    if not has_users(config):
        return
    if (config["HeadNode"].get("Imds") or {}).get("Secured") is False:
        yield (
            "HeadNode.Imds.Secured: with users or directory, each of them would have the head node's role\n"
            "    type: remove it; it is true"
        )
    for line in config["Scheduling"]["SlurmSettings"].get("CustomSlurmSettings", []):
        keys = {str(key).lower(): str(value) for key, value in line.items()}
        if "partitionname" in keys and not re.fullmatch(YES, keys.get("exclusiveuser", ""), re.IGNORECASE):
            yield (
                f"CustomSlurmSettings, PartitionName={keys['partitionname']}: several users would share its "
                "nodes\n    type: ExclusiveUser: YES here, or shared: true of a queue: docs/queues.md"
            )


def _one_subnet(config: Config) -> Iterator[str]:
    """Check the subnet of a new Lustre, as ManagedFsxMultiAzValidator does."""
    count = len(queue_subnets(config))
    for each in managed_storage(config) if count > 1 else ():
        if each.kind == "FsxLustre":
            yield (
                f"SharedStorage[{each.name}]: ParallelCluster makes a Lustre file system only where all "
                f"queues have one subnet, and these have {count}: make it yourself, and give its FileSystemId"
            )


def _mounts(config: Config) -> Iterator[str]:
    storage = config.get("SharedStorage", [])
    folders = ["/" + each["MountDir"].strip("/") for each in storage]
    for each in storage:
        sections = {key for key in each if key.endswith("Settings")} - {f"{each['StorageType']}Settings"}
        for section in sorted(sections):
            yield f"SharedStorage[{each['Name']}]: {section} is not of StorageType {each['StorageType']}"
    for folder in folders:
        if " " in folder:
            yield f"SharedStorage: `{folder}` is two paths; the same file system can be mounted only once"
    scratch = {
        volume["MountDir"]
        for queue in config["Scheduling"]["SlurmQueues"]
        if (volume := queue.get("ComputeSettings", {}).get("LocalStorage", {}).get("EphemeralVolume"))
    }
    for folder, count in Counter([*folders, *scratch]).items():
        if count > 1:
            yield f"SharedStorage: {folder} is mounted {count} times"
    for folder in folders:
        for other in {*folders, *scratch} - {folder}:
            if other.startswith(folder + "/"):
                yield f"SharedStorage: {other} is within {folder}"
    settings = [each.get(f"{each['StorageType']}Settings") or {} for each in storage]
    ids = Counter(each[key] for each in settings for key in _IDS if key in each)
    for id_, count in ids.items():
        if count > 1:
            yield f"SharedStorage: {id_} is listed {count} times instead of once"
