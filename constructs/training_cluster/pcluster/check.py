"""Check of the cluster config before any resource exists: against the schema, then pure rules."""

from typing import Any

from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import placeholders, with_existing
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.config_diff import differences, shown
from training_cluster.pcluster.rules import rule_problems
from training_cluster.pcluster.schema import schema_problems
from training_cluster.problems import ConfigurationError

BUILT_IMAGE = "ami-0b0b0b0b0b0b0b0b0"
"""Placeholder of an image that the deploy builds."""


def config_problems(config: dict[str, Any]) -> list[str]:
    """Return the mistakes that ParallelCluster finds in a config without a call of AWS."""
    return schema_problems(config) or rule_problems(config)


def check_cluster_config(config: dict[str, Any], settings: Settings) -> None:
    """Check the cluster config that was rendered from settings; its ids may be tokens.

    Raises:
        ConfigurationError: ParallelCluster would refuse it, by a mistake in the app or in the family's file.
    """
    _refuse(config_problems(config), settings)


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
    ids = placeholders(image_id=BUILT_IMAGE, bootstrap_budget_s=bootstrap_budget_s(settings))
    config = render_cluster_config(settings=settings, ids=with_existing(ids, settings))
    _refuse(schema_problems(config), settings)
    return config


def override_changes(settings: Settings) -> list[str]:
    """Return a line for each key that the file of overrides changes: `KEY: OLD -> NEW`."""
    plain = config_before_deploy(settings.model_copy(update={"overrides": None}))
    changed = differences(plain, config_before_deploy(settings))
    return [f"{path}: {shown(old)} -> {shown(new)}" for path, old, new in changed]
