"""Reads the ids for a cluster config from existing stacks."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ops.account.session import ClientOf, unless
from ops.account.stacks import Stack
from ops.preflight.existing_network import ExistingNetwork
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.resource_ids import Database, ResourceIds, existing_database, placeholders
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_parameter
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STORAGE_STACK

_POLICY = "AWS::IAM::ManagedPolicy"


def known_ids(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> ResourceIds:
    """Return the ids of NetworkStack, StorageStack and an existing cluster; else placeholders.

    Raises botocore's errors, and KeyError for a stack of this app without a required output.
    """
    network, storage = existing.stacks[NETWORK_STACK].outputs, existing.stacks[STORAGE_STACK].outputs
    start = placeholders(
        image_id=_image_id(settings, client), bootstrap_budget_s=bootstrap_budget_s(settings)
    )
    ids = replace(
        start,
        region=client("ec2").meta.region_name,
        public_subnet_id=network["PublicSubnetId"],
        private_subnet_id=network["PrivateSubnetId"],
        node_security_group_id=network["NodeSecurityGroupId"],
        bucket_name=storage["BucketName"],
        lustre_id=storage["FileSystemId"],
        efs_id=storage["EfsId"],
        key_name=settings.key_name or f"{settings.cluster_name}-key",
        database=_database(settings, existing),
    )
    own = existing.stacks.get(settings.stack_name)
    # Not looked up: the validators get a group of ParallelCluster's own in their place.
    groups = {queue.name: start.placement_group_name or "" for queue in settings.all_queues[1:]}
    return replace(_with_own(ids, own) if own else ids, more_placement_groups=groups)


def _with_own(ids: ResourceIds, own: Stack) -> ResourceIds:
    group = _physical_id(own, "AWS::EC2::PlacementGroup", "")
    return replace(
        ids,
        nodes_policy_arn=_physical_id(own, _POLICY, "NodesPolicy") or ids.nodes_policy_arn,
        datasets_policy_arn=_physical_id(own, _POLICY, "DatasetsPolicy") or ids.datasets_policy_arn,
        login_policy_arn=_physical_id(own, _POLICY, "LoginPolicy") or ids.login_policy_arn,
        buckets_policy_arn=_physical_id(own, _POLICY, "BucketsPolicy") or ids.buckets_policy_arn,
        placement_group_name=group or ids.placement_group_name,
    )


def _physical_id(stack: Stack, type_: str, prefix: str) -> str | None:
    """Return the id of the resource whose logical id has the prefix, to which CDK appends a hash."""
    found = (each for each in stack.of_type(type_) if each.logical_id.startswith(prefix))
    return next((each.physical_id for each in found), None)


def _image_id(settings: Settings, client: ClientOf) -> str | None:
    if settings.node_image != "build":
        return None if settings.node_image == "official" else settings.node_image
    name = image_parameter(settings)
    answer = unless(lambda: client("ssm").get_parameter(Name=name), "ParameterNotFound")
    return str(answer["Parameter"]["Value"]) if answer else None


def _database(settings: Settings, existing: ExistingNetwork) -> Database | None:
    if settings.accounting != "new":
        return existing_database(settings)
    stack = existing.stacks[ACCOUNTING_STACK]
    secret = _physical_id(stack, "AWS::SecretsManager::Secret", "") or ""
    return Database(uri=stack.outputs["Database"], user="slurm", secret_arn=secret)


def without_future_resources(
    config: Mapping[str, Any], settings: Settings, *, is_new: bool
) -> dict[str, Any]:
    """Remove resources that the deploy creates just before the cluster: the validators look them up in AWS.

    These are policies and a placement group that do not exist yet (replaced by ParallelCluster's own group),
    and for a new cluster the scripts and the key.
    """
    left = copy.deepcopy(dict(config))
    queues, pools = left["Scheduling"]["SlurmQueues"], left.get("LoginNodes", {}).get("Pools", [])
    some = placeholders(image_id=None, bootstrap_budget_s=0)
    unmade = {some.nodes_policy_arn, some.datasets_policy_arn, some.login_policy_arn, some.buckets_policy_arn}
    for node in (left["HeadNode"], *queues, *pools):
        policies = node["Iam"].pop("AdditionalIamPolicies", [])
        if existing_policies := [each for each in policies if each["Policy"] not in unmade]:
            node["Iam"]["AdditionalIamPolicies"] = existing_policies
        if is_new:
            node.pop("CustomActions", None)
    for queue in queues:
        if queue["Networking"].get("PlacementGroup", {}).get("Name") == some.placement_group_name:
            queue["Networking"]["PlacementGroup"] = {"Enabled": True}
    if is_new and settings.key_name is None:
        left["HeadNode"].pop("Ssh", None)
    return left
