"""Reads the ids for a cluster config from existing stacks."""

from collections.abc import Mapping
from typing import Any

from ops.account.image_stacks import node_image_id
from ops.account.session import ClientOf
from ops.preflight.existing_network import ExistingNetwork
from training_cluster.cluster.deployed_ids import Existing, deployed_ids, without_unmade
from training_cluster.cluster.resource_ids import Database, ResourceIds, existing_database
from training_cluster.flags.settings import Settings
from training_cluster.overrides.nodes import nodes_of
from training_cluster.stack_names import ACCOUNTING_STACK


def known_ids(settings: Settings, existing: ExistingNetwork, client: ClientOf) -> ResourceIds:
    """Return the ids of NetworkStack, StorageStack and an existing cluster. Raises botocore's errors."""
    own = existing.stacks.get(settings.stack_name)
    return deployed_ids(
        settings,
        Existing(
            region=client("ec2").meta.region_name,
            outputs={name: stack.outputs for name, stack in existing.stacks.items()},
            own={each.logical_id: each.physical_id for each in (own.resources if own else ())},
            database=_database(settings, existing),
            image_id=node_image_id(settings, client),
        ),
    )


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
    if is_new:
        for node in nodes_of(left):
            node.pop("CustomActions", None)
    if is_new and settings.key_name is None:
        left["HeadNode"].pop("Ssh", None)
    return left
