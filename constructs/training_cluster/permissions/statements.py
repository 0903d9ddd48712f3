"""IAM statements of the provider: actions from permissions.tsv, resources and conditions from scopes.py.

ParallelCluster creates its stack with the caller's rights, so these cover the cluster's resources too, not
only the library's own calls. Not proven on real AWS: docs/permissions.md.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from aws_cdk import aws_iam as iam

from training_cluster.permissions.overrides import attachable, grants, managed_types
from training_cluster.permissions.scopes import Scope, Target, scopes
from training_cluster.permissions.table import load


def provider_statements(target: Target, config: Mapping[str, Any] | None = None) -> list[iam.PolicyStatement]:
    """Return the statements of the provider's role for one cluster, one a scope.

    Args:
        config: the cluster config: policies of its nodes, and what only keys of overrides need.
    """
    table, config = load(), config or {}
    prefix = config.get("Iam", {}).get("ResourcePrefix")
    target = replace(target, node_policies=attachable(config), iam_prefix=prefix)
    types = managed_types(config)

    def allowed(scope: Scope) -> list[str]:
        rows = [row for row in table if scope.name in row.scopes]
        return [row.action for row in rows if not scope.of_types or row.type_names & types]

    return [
        iam.PolicyStatement(
            sid=scope.name,
            actions=actions,
            resources=list(scope.resources),
            conditions=scope.conditions,
        )
        for scope in scopes(target)
        if (actions := allowed(scope))
    ] + [*(grants(config) if config else ())]
