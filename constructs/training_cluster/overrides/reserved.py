"""Keys of the cluster config that a file of overrides cannot set, since a flag does."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

_NODES = r"(HeadNode|Scheduling\.SlurmQueues\[[^]]*\]|LoginNodes\.Pools\[[^]]*\])"
_QUEUE = r"Scheduling\.SlurmQueues\[[^]]*\]"
_RESOURCE = rf"{_QUEUE}\.ComputeResources\[[^]]*\]"
_ACCESS = r"\.EfsSettings\.(AccessPointId|IamAuthorization)$"
_NETWORK = "-c vpc_id, public_subnet_id, private_subnet_id"
_GROUP = "-c security_group_id, or AdditionalSecurityGroups in addition to ours"
_RIGHTS = "-c node_policies, read_buckets, write_buckets, for all nodes; items of a list are added for one"
_DIRECTORY = "-c directory=FILE, a file with these keys (docs/how-to/users.md)"
_ON_BUSY = "-c on_busy=fail, on_busy=drain (DRAIN) or on_busy=stop (TERMINATE)"
_SETTINGS = "not to be removed: PrologFlags let jobs wait for health checks; items of a list are added"
_SETUP = "not to be removed: nodes need our scripts, and yours run after them"

RESERVED: Mapping[str, str] = {
    r"Region": "the deploy sets it, from AWS_REGION or the AWS profile",
    r"Image(\.Os)?": "-c os",
    r"Image\.CustomAmi": "not for all nodes: -c image, and HeadNode.Image.CustomAmi for the head node",
    r"Iam(\.PermissionsBoundary)?": "-c permissions_boundary",
    r"Tags(\[.*)?": "-c tags",
    r"DevSettings(\.Timeouts)?": "not to be removed: the time limits of the nodes' steps decide",
    r"SharedStorage": "not to be replaced; add items with Name, StorageType and MountDir",
    rf"SharedStorage\[(shared|efs)\](?!{_ACCESS}).*": "-c fsx_type, fsx_gib, fsx_id, efs_id, home "
    "(docs/flags.md, Storage)",
    r"Scheduling": "not to be removed; give its keys SlurmSettings or SlurmQueues",
    r"Scheduling\.Scheduler": "not to be set: it is slurm",
    r"Scheduling\.SlurmQueues": "not to be removed; give items with the Name of a queue",
    r"Scheduling\.SlurmSettings\.Database(\.(Uri|UserName|PasswordSecretArn))?": "-c accounting, "
    "accounting_user, accounting_secret",
    r"Scheduling\.SlurmSettings\.QueueUpdateStrategy": _ON_BUSY,
    r"Scheduling\.SlurmSettings(\.CustomSlurmSettings)?": _SETTINGS,
    r"Scheduling\.SlurmSettings\.CustomSlurmSettingsIncludeFile": "not with CustomSlurmSettings, which the "
    "app needs: give its lines there",
    r"DirectoryService.*": _DIRECTORY,
    r"HeadNode": "not to be removed; give its keys",
    r"HeadNode\.InstanceType": "-c head_node_type",
    r"HeadNode\.LocalStorage(\.RootVolume(\.Size)?)?": "-c head_root_gib",
    r"HeadNode\.Ssh(\.KeyName)?": "-c key_name",
    r"HeadNode\.Networking(\.SubnetId)?": _NETWORK,
    r"LoginNodes(\.Pools(\[login\]\.Count)?)?": "-c login_nodes",
    r"LoginNodes\.Pools\[[^]]*\]": "not to be removed; -c login_nodes=0 takes all pools away",
    rf"{_NODES}\.Networking\.SecurityGroups": _GROUP,
    rf"{_NODES}\.Iam(\.(S3Access|AdditionalIamPolicies))?": _RIGHTS,
    rf"{_NODES}\.Iam\.InstanceProfile": "give its role, as InstanceRole: our policy is attached to it",
    rf"{_NODES}\.CustomActions(\.OnNode(Configured|Updated))?": _SETUP,
    rf"{_QUEUE}\.Networking(\.SubnetIds)?": f"{_NETWORK}, queues",
    r"LoginNodes\.Pools\[[^]]*\]\.Networking": "not to be removed; give its keys",
    rf"{_QUEUE}\.Networking\.PlacementGroup.*": "-c placement_group, queues",
    rf"{_RESOURCE}\.Networking(\.PlacementGroup.*)?": "-c placement_group, queues",
    rf"{_QUEUE}\.(CapacityType|CapacityReservationTarget.*)": "-c capacity, queues",
    rf"{_QUEUE}\.Image.*": "-c image, queues",
    rf"{_QUEUE}\.ComputeResources": "not to be removed; give items with the Name of a compute resource",
    rf"{_RESOURCE}\.(InstanceType|Instances.*)": "-c family, instance_type, cpu_queue, queues",
    rf"{_RESOURCE}\.MinCount": "-c min_nodes, queues",
    rf"{_RESOURCE}\.MaxCount": "-c nodes, queues",
    rf"{_RESOURCE}\.Efa(\.Enabled)?": "-c family, instance_type, queues",
    rf"{_RESOURCE}\.CapacityReservationTarget.*": "-c capacity, queues",
}
"""Patterns of paths that are refused, with the flags to type or the reason.

A path without a tail matches where the whole key is removed (null) or is not a mapping.
"""
_PATTERNS = {re.compile(pattern): instead for pattern, instead in RESERVED.items()}


def reserved_keys(overrides: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each key of a file of overrides that a flag sets."""
    for path in dict.fromkeys(_leaves(overrides, "")):
        if reason := _reason(path):
            yield f"{path}: {reason}"


def reserved_reason(value: Any, path: str) -> str | None:
    """Return why a value at a path is refused, and what sets it instead; None for one that may be set."""
    return next((reason for each in _leaves(value, path) if (reason := _reason(each))), None)


def _reason(path: str) -> str | None:
    instead = next((words for pattern, words in _PATTERNS.items() if pattern.fullmatch(path)), None)
    return f"a flag sets it: {instead}" if instead and instead.startswith("-c") else instead


def _leaves(value: Any, path: str) -> Iterator[str]:
    """Yield the paths of values that are set or removed."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            at = f"{path}.{key}" if path else str(key)
            # The user's actions run in addition to the app's.
            if re.search(r"\.OnNode(Configured|Updated)$", at) and inner is not None:
                continue
            yield from _leaves(inner, at)
    elif isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        for item in value:
            name = next((item[key] for key in ("Name", "Policy", "Key") if key in item), "")
            rest = {key: inner for key, inner in item.items() if key != "Name"}
            yield from _leaves(rest, f"{path}[{name}]")
    else:
        yield path
