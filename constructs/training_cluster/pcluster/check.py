"""Check of the cluster config before any resource exists: against the schema, then pure rules."""

from __future__ import annotations

from typing import Any

from training_cluster.cluster.bundle import bootstrap_budget_s
from training_cluster.cluster.config import render_cluster_config
from training_cluster.cluster.resource_ids import placeholders
from training_cluster.flags.cluster import PCLUSTER_VERSION
from training_cluster.flags.settings import Settings
from training_cluster.pcluster.rules import rule_problems
from training_cluster.pcluster.schema import schema_problems
from training_cluster.problems import ConfigurationError

_SOME_IMAGE = "ami-0123456789abcdef0"


def config_problems(config: dict[str, Any]) -> list[str]:
    """Return the mistakes that ParallelCluster finds in a config without a call of AWS."""
    return schema_problems(config) or rule_problems(config)


def check_rendered_config(settings: Settings) -> None:
    """Check the cluster config that is rendered from settings.

    Raises:
        ConfigurationError: ParallelCluster would refuse it, by a mistake in the app or in the family's file.
    """
    ids = placeholders(image_id=_SOME_IMAGE, bootstrap_budget_s=bootstrap_budget_s(settings))
    problems = config_problems(render_cluster_config(settings=settings, ids=ids))
    if problems:
        raise ConfigurationError(
            f"ParallelCluster {PCLUSTER_VERSION} would refuse this cluster config; look at "
            f"cluster_configs/{settings.family}.yaml and base.yaml:\n  " + "\n  ".join(problems)
        )
