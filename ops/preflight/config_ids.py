"""Reads the ids for a cluster config from existing stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ops.account.own_resources import with_own_resources, without_unmade
from ops.account.session import ClientOf, unless
from ops.preflight.existing_network import ExistingNetwork
from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.resource_ids import Database, ResourceIds, existing_database, placeholders
from training_cluster.flags.settings import Settings
from training_cluster.image.names import image_parameter
from training_cluster.stack_names import ACCOUNTING_STACK, NETWORK_STACK, STORAGE_STACK


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
    return with_own_resources(ids, settings, own.resources if own else ())


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
    secret = next((each.physical_id for each in stack.of_type("AWS::SecretsManager::Secret")), "")
    return Database(uri=stack.outputs["Database"], user="slurm", secret_arn=secret)


def without_future_resources(
    config: Mapping[str, Any], settings: Settings, *, is_new: bool
) -> dict[str, Any]:
    """Remove resources that the deploy creates just before the cluster: the validators look them up in AWS.

    For a new cluster, these include the scripts and the key.
    """
    left, _ = without_unmade(config)
    queues, pools = left["Scheduling"]["SlurmQueues"], left.get("LoginNodes", {}).get("Pools", [])
    if is_new:
        for node in (left["HeadNode"], *queues, *pools):
            node.pop("CustomActions", None)
    if is_new and settings.key_name is None:
        left["HeadNode"].pop("Ssh", None)
    return left
