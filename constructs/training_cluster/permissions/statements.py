"""IAM statements of the provider: actions from permissions.tsv, resources and conditions from scopes.py.

ParallelCluster creates its stack with the caller's rights, so these cover the cluster's resources too, not
only the library's own calls. Not proven on real AWS: docs/permissions.md.
"""

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_iam as iam

from training_cluster.permissions.overrides import attachable, grants
from training_cluster.permissions.scopes import Target, scopes
from training_cluster.permissions.table import load


def provider_statements(
    *,
    scripts_bucket_arn: str,
    cluster_name: str,
    permissions_boundary: str | None,
    secret_arn: str | None,
    progress_parameter_arn: str | None = None,
    progress_log_group_arn: str | None = None,
    config: Mapping[str, Any] | None = None,
) -> list[iam.PolicyStatement]:
    """Return the statements of the provider's role for one cluster, one a scope.

    Args:
        permissions_boundary: ARN of the policy that must bound every role that the provider makes.
        secret_arn: ARN of the secret with the accounting database's password, which the library looks up.
        progress_parameter_arn: ARN of the SSM parameter with the provider's progress.
        progress_log_group_arn: ARN of the log group of its steps, with `:*` for its streams at the end, as
            LogGroup.log_group_arn returns it.
        config: the cluster config: policies of its nodes, and what only keys of overrides need.
    """
    target = Target(
        cluster_name=cluster_name,
        scripts_bucket_arn=scripts_bucket_arn,
        permissions_boundary=permissions_boundary,
        secret_arn=secret_arn,
        progress_parameter_arn=progress_parameter_arn,
        progress_log_group_arn=progress_log_group_arn,
        node_policies=attachable(config or {}),
        iam_prefix=(config or {}).get("Iam", {}).get("ResourcePrefix"),
    )
    table = load()
    return [
        iam.PolicyStatement(
            sid=scope.name,
            actions=[row.action for row in table if scope.name in row.scopes],
            resources=list(scope.resources),
            conditions=scope.conditions,
        )
        for scope in scopes(target)
    ] + [
        iam.PolicyStatement(
            sid=each.sid,
            actions=list(each.actions),
            resources=list(each.resources),
            conditions=each.conditions,
        )
        for each in (grants(config) if config else ())
    ]
