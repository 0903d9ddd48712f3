"""Roles and security groups of nodes, where ParallelCluster takes either the user's or others."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from training_cluster.flags.account import POLICY_ARN

Config = Mapping[str, Any]
ROLE = "InstanceRole"
HEAD, COMPUTE, LOGIN = "Head", "Compute", "Login"
"""Kinds of nodes."""
_KINDS = {"HeadNode": HEAD, "Scheduling": COMPUTE, "LoginNodes": LOGIN}
"""Kind of the nodes by the first key of their path."""
MORE_GROUPS = "AdditionalSecurityGroups"


def with_own_roles(config: dict[str, Any]) -> dict[str, Any]:
    """Return a config without our policies and buckets where a node has a role of the user's."""
    for node in nodes_of(config):
        if ROLE in (node.get("Iam") or {}):
            node["Iam"] = {ROLE: node["Iam"][ROLE]}
    return config


def with_groups(config: dict[str, Any], everywhere: Sequence[str] = ()) -> dict[str, Any]:
    """Return a config with additional security groups after ours: SecurityGroups excludes the other key.

    Args:
        config: a config whose nodes may have AdditionalSecurityGroups.
        everywhere: groups that all nodes get, too.
    """
    for node in nodes_of(config):
        networking = node.get("Networking")
        if not isinstance(networking, dict) or not isinstance(own := networking.get(MORE_GROUPS, []), list):
            continue
        if more := [*everywhere, *own]:
            groups = [*networking.get("SecurityGroups", []), *more]
            kept = {key: value for key, value in networking.items() if key != MORE_GROUPS}
            once = [each for at, each in enumerate(groups) if each not in groups[:at]]
            node["Networking"] = {**kept, "SecurityGroups": once}
    return config


def own_roles(config: Config) -> dict[str, frozenset[str]]:
    """Return the kinds of nodes of each role that the user made, by its ARN, sorted."""
    found = [
        (str(_rights(node)[ROLE]), _KINDS[path.partition(".")[0]])
        for path, node in placed_nodes(config)
        if ROLE in _rights(node)
    ]
    return {arn: frozenset(kind for role, kind in found if role == arn) for arn, _ in sorted(found)}


def node_policies(config: Config) -> tuple[str, ...]:
    """Return the ARNs of all nodes' AdditionalIamPolicies, each once."""
    return _named(config, "AdditionalIamPolicies", "Policy")


def node_buckets(config: Config) -> tuple[str, ...]:
    """Return the buckets of all nodes' S3Access, each once."""
    return _named(config, "S3Access", "BucketName")


def excluded_rights(config: Config) -> Iterator[str]:
    """Yield a sentence for each node with the user's role and rights: these are added to no such role."""
    for node in nodes_of(config):
        iam = _rights(node)
        for key in ("AdditionalIamPolicies", "S3Access"):
            if ROLE in iam and key in iam:
                where = node.get("Name", "HeadNode")
                yield f"{where}: Iam.{key}: not added to your own role: attach the rights to {iam[ROLE]}"


def unusable_policies(config: Config) -> Iterator[str]:
    """Yield a sentence for each policy without an ARN: by a wildcard the provider could attach any."""
    for arn in node_policies(config):
        if not re.fullmatch(POLICY_ARN, arn):
            yield f'Iam.AdditionalIamPolicies: "{arn}" is not the ARN of a policy'


def _named(config: Config, key: str, name: str) -> tuple[str, ...]:
    found = [each for node in nodes_of(config) for each in _listed({"Iam": _rights(node)}, "Iam", key)]
    return tuple(dict.fromkeys(str(each[name]) for each in found if isinstance(each, dict) and name in each))


def _rights(node: Config) -> Config:
    rights = node.get("Iam")
    return rights if isinstance(rights, dict) else {}


def nodes_of(config: Config) -> Iterator[dict[str, Any]]:
    """Yield the head node, the queues and the pools of login nodes."""
    yield from (node for _, node in placed_nodes(config))


def placed_nodes(config: Config) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield head node, queues and pools of login nodes, with their paths."""
    if isinstance(head := config.get("HeadNode"), dict):
        yield "HeadNode", head
    for part, key in (("Scheduling", "SlurmQueues"), ("LoginNodes", "Pools")):
        for each in _listed(config, part, key):
            if isinstance(each, dict):
                yield f"{part}.{key}[{each.get('Name')}]", each


def placement_groups(config: Config) -> Iterator[Config]:
    """Yield PlacementGroup of each queue and compute resource of a config that has the key."""
    queues = config.get("Scheduling", {}).get("SlurmQueues", ())
    for node in (each for queue in queues for each in (queue, *queue.get("ComputeResources", ()))):
        if group := (node.get("Networking") or {}).get("PlacementGroup"):
            yield group


def _listed(config: Config, part: str, key: str) -> list[Any]:
    within = config.get(part)
    items = within.get(key) if isinstance(within, dict) else None
    return items if isinstance(items, list) else []
