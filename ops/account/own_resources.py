"""Policies and placement groups of a cluster's own stack, in a config for ParallelCluster's library."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from ops.account.stacks import Resource
from training_cluster.cluster.resource_ids import ResourceIds, placeholders
from training_cluster.flags.settings import Settings

_HASH_LENGTH = 8
"""Length of the hash at the end of the CDK's logical ids."""
_PLACEHOLDERS = placeholders(image_id=None, bootstrap_budget_s=0)
_POLICIES = {str(getattr(_PLACEHOLDERS, field)): field for field in ResourceIds.own_policies()}


def with_own_resources(ids: ResourceIds, settings: Settings, resources: Iterable[Resource]) -> ResourceIds:
    """Return ids with those of the existing resources; the others are placeholders.

    Args:
        resources: those of the cluster's own stack.
    """
    found = {each.logical_id[:-_HASH_LENGTH]: each.physical_id for each in resources}
    policies: dict[str, Any] = {
        field: found.get(construct, getattr(_PLACEHOLDERS, field))
        for field, construct in ResourceIds.own_policies().items()
    }
    group = str(_PLACEHOLDERS.placement_group_name)
    groups = {
        queue.name: found.get(f"PlacementGroup{re.sub('[^A-Za-z0-9]', '', queue.name)}", group)
        for queue in settings.all_queues[1:]
    }
    first = found.get("PlacementGroup", group)
    return replace(ids, **policies, placement_group_name=first, more_placement_groups=groups)


def without_unmade(config: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a config without the resources that the deploy makes before the cluster, and their names.

    The validators look these up in AWS. A queue gets a placement group of ParallelCluster's in their place.
    """
    left, unmade = copy.deepcopy(dict(config)), list[str]()
    queues, pools = left["Scheduling"]["SlurmQueues"], left.get("LoginNodes", {}).get("Pools", [])
    for node in (left["HeadNode"], *queues, *pools):
        policies = node["Iam"].pop("AdditionalIamPolicies", [])
        unmade += [_policy_name(each["Policy"]) for each in policies if each["Policy"] in _POLICIES]
        if made := [each for each in policies if each["Policy"] not in _POLICIES]:
            node["Iam"]["AdditionalIamPolicies"] = made
    for queue in queues:
        if queue["Networking"].get("PlacementGroup", {}).get("Name") == _PLACEHOLDERS.placement_group_name:
            queue["Networking"]["PlacementGroup"] = {"Enabled": True}
            unmade.append(f"the placement group of {queue['Name']}")
    return left, tuple(dict.fromkeys(unmade))


def _policy_name(placeholder: str) -> str:
    """Return a policy's name for people: `the login policy`."""
    return f"the {_POLICIES[placeholder].removesuffix('_arn').replace('_', ' ')}"
