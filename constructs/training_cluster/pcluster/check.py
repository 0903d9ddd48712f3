"""Check of the cluster config before any resource exists: against the schema, then pure rules."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.fleet import PRIVATE_PREFIX, RESERVED_ADDRESSES, addresses_in, compute_nodes
from training_cluster.cluster.nodes import has_accounting
from training_cluster.cluster.queues import WEIGHTS
from training_cluster.cluster.resource_ids import PLACEHOLDERS, with_existing
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.config_diff import differences, shown
from training_cluster.pcluster.rules import rule_problems
from training_cluster.pcluster.schema import schema_problems
from training_cluster.problems import ConfigurationError
from training_cluster.users.file import read_users
from training_cluster.users.model import Users

BUILT_IMAGE = "ami-0b0b0b0b0b0b0b0b0"
"""Placeholder of an image that the deploy builds."""


def config_problems(config: dict[str, Any]) -> list[str]:
    """Return the mistakes that ParallelCluster finds in a config without a call of AWS."""
    return schema_problems(config) or rule_problems(config)


def _refuse_idle_limits(config: dict[str, Any], settings: Settings) -> None:
    """Refuse limits in the file of users that nothing in this cluster would enforce."""
    limits = list(_limits(settings))
    if limits and not has_accounting(config):
        raise ConfigurationError(
            f"users={settings.users}: {', '.join(limits)}: nothing enforces it without Slurm's accounting\n"
            "    type: -c accounting=new (a cluster stops its nodes for it), or your own database "
            f"(docs/how-to/users.md); or remove these keys from {settings.users}"
        )
    budgets = [each for each in limits if each.endswith("max_gpu_hours")]
    if budgets and not any(map(_has_weights, config["Scheduling"]["SlurmQueues"])):
        raise ConfigurationError(
            f"users={settings.users}: {', '.join(budgets)}: no node of this cluster has a GPU whose hours "
            f"Slurm could count\n    type: remove these keys from {settings.users}, or take a family with "
            "GPUs (docs/families.md)"
        )


def _has_weights(queue: dict[str, Any]) -> bool:
    return WEIGHTS.lower() in {key.lower() for key in queue.get("CustomSlurmSettings") or {}}


def _limits(settings: Settings) -> Iterator[str]:
    """Yield the place of each limit in the file of users that Slurm enforces by its accounting."""
    users = read_users(settings.users) if settings.users else Users(users={})
    for kind, entries in (("accounts", users.accounts), ("users", users.users)):
        for name, entry in entries.items():
            yield from (f"{kind}.{name}.{key}" for key, value in entry if key.startswith("max_") and value)


def _refuse(problems: list[str], settings: Settings) -> None:
    if problems:
        given = [each for each in (settings.overrides, settings.queues) if each]
        files = " and ".join(given) or f"cluster_configs/{settings.family}.yaml and base.yaml"
        raise ConfigurationError(
            f"ParallelCluster {PCLUSTER_VERSION} or its Slurm would refuse this cluster config; "
            f"look at {files}:\n  " + "\n  ".join(problems)
        )


def config_before_deploy(settings: Settings) -> dict[str, Any]:
    """Render the cluster config with placeholders for the ids of resources that a deploy creates.

    Raises:
        ConfigurationError: ParallelCluster's schema refuses it, so nothing can be derived from it.
    """
    ids = replace(PLACEHOLDERS, image_id=BUILT_IMAGE, bootstrap_budget_s=bootstrap_budget_s(settings))
    config = render_cluster_config(settings=settings, ids=with_existing(ids, settings))
    _refuse(schema_problems(config), settings)
    return config


def checked_config(settings: Settings) -> dict[str, Any]:
    """Render the cluster config like `config_before_deploy`, and check it.

    Raises:
        ConfigurationError: ParallelCluster would refuse it, by a mistake in the app or in the family's file,
            nothing would enforce a limit of the file of users, or a new subnet has too few addresses.
    """
    config = config_before_deploy(settings)
    _refuse(rule_problems(config), settings)
    _refuse_idle_limits(config, settings)
    if not settings.private_subnet_id:
        _refuse_crowd(config)
    return config


def _refuse_crowd(config: dict[str, Any]) -> None:
    """Refuse more nodes in the new private subnet than it has addresses for."""
    free = 2 ** (32 - PRIVATE_PREFIX) - 5 - RESERVED_ADDRESSES
    needed = addresses_in(PLACEHOLDERS.private_subnet_id, config)
    if needed > free:
        cards = max(each.addresses for each in compute_nodes(config))
        raise ConfigurationError(
            f"the nodes take {needed} private addresses, and the new private subnet has {free}"
            + (f"; without EFA a node takes up to {cards}, one for each network card" if cards > 1 else "")
            + "\n    type: -c queues=... with fewer nodes, or with subnets of their own (subnet_ids)"
            + (", or without `efa: false`" if cards > 1 else "")
        )


def override_changes(settings: Settings) -> list[str]:
    """Return a line for each key that the file of overrides changes: `KEY: OLD -> NEW`."""
    plain = config_before_deploy(settings.model_copy(update={"overrides": None}))
    changed = differences(plain, config_before_deploy(settings))
    return [f"{path}: {shown(old)} -> {shown(new)}" for path, old, new in changed]
