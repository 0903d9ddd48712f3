"""Ids of a cluster config as TrainingClusterStack renders it, from the resources that exist already.

The validators look ids up in AWS, so the resources that a deploy makes first are taken out of a config.
"""

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.resource_ids import PLACEHOLDERS, Database, ResourceIds, with_existing
from training_cluster.flags.settings import Settings
from training_cluster.overrides.nodes import nodes_of
from training_cluster.stack_names import NETWORK_STACK, STORAGE_STACK, new_key_pair

_HASH_LENGTH = 8
"""Length of the hash at the end of the CDK's logical ids."""
_POLICIES = {str(getattr(PLACEHOLDERS, field)): field for field in ResourceIds.own_policies()}


@dataclass(frozen=True, kw_only=True)
class Existing:
    """Resources of our deployed stacks."""

    region: str
    outputs: Mapping[str, Mapping[str, str]]
    """Outputs of each stack, by its name."""
    own: Mapping[str, str]
    """Ids of the resources of the cluster's own stack, by logical id."""
    database: Database | None
    image_id: str | None
    """AMI of the nodes; None for ParallelCluster's own, and for one that the deploy builds first."""


def deployed_ids(
    settings: Settings, existing: Existing, *, bundle_sha256: str = PLACEHOLDERS.bundle_sha256
) -> ResourceIds:
    """Return the ids that a deploy with these flags would render.

    Placeholders stand for policies and placement groups that the deploy creates.
    """

    def of(stack: str, output: str) -> str:
        return existing.outputs.get(stack, {}).get(output, "unknown")

    own = {logical_id[:-_HASH_LENGTH]: id_ for logical_id, id_ in existing.own.items()}
    policies: dict[str, Any] = {
        field: own.get(construct, getattr(PLACEHOLDERS, field))
        for field, construct in ResourceIds.own_policies().items()
    }
    group = str(PLACEHOLDERS.placement_group_name)
    ids = ResourceIds(
        region=existing.region,
        public_subnet_id=of(NETWORK_STACK, "PublicSubnetId"),
        private_subnet_id=of(NETWORK_STACK, "PrivateSubnetId"),
        node_security_group_id=of(NETWORK_STACK, "NodeSecurityGroupId"),
        key_name=new_key_pair(settings.cluster_name),
        lustre_id=of(STORAGE_STACK, "FileSystemId"),
        efs_id=of(STORAGE_STACK, "EfsId"),
        bucket_name=of(STORAGE_STACK, "BucketName"),
        bundle_sha256=bundle_sha256,
        bootstrap_budget_s=bootstrap_budget_s(settings),
        image_id=existing.image_id,
        placement_group_name=own.get("PlacementGroup", group),
        more_placement_groups={
            queue.name: own.get(f"PlacementGroup{re.sub('[^A-Za-z0-9]', '', queue.name)}", group)
            for queue in settings.all_queues[1:]
        },
        database=existing.database,
        users_role_name=own.get("UsersRole", PLACEHOLDERS.users_role_name),
        **policies,
    )
    return with_existing(ids, settings)


def without_unmade(config: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return a config without the resources that the deploy makes before the cluster, and their names.

    The validators look these up in AWS. A queue gets a placement group of ParallelCluster's in their place.
    """
    left, unmade = copy.deepcopy(dict(config)), list[str]()
    for node in nodes_of(left):
        policies = node["Iam"].pop("AdditionalIamPolicies", [])
        unmade += [_policy_name(each["Policy"]) for each in policies if each["Policy"] in _POLICIES]
        if made := [each for each in policies if each["Policy"] not in _POLICIES]:
            node["Iam"]["AdditionalIamPolicies"] = made
    for queue in left["Scheduling"]["SlurmQueues"]:
        if queue["Networking"].get("PlacementGroup", {}).get("Name") == PLACEHOLDERS.placement_group_name:
            queue["Networking"]["PlacementGroup"] = {"Enabled": True}
            unmade.append(f"the placement group of {queue['Name']}")
    return left, tuple(dict.fromkeys(unmade))


def _policy_name(placeholder: str) -> str:
    """Return a policy's name for people: `the login policy`."""
    return f"the {_POLICIES[placeholder].removesuffix('_arn').replace('_', ' ')}"
