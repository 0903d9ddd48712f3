"""Role of the people who share a cluster: their jobs have it in place of the role of the node.

assets/bootstrap/services/credentials.py of each compute node begins a session of it for each user, whose
name is the session's tag.
"""

from collections.abc import Mapping
from typing import Any

from aws_cdk import aws_iam as iam
from constructs import Construct

from training_cluster.acknowledgements import acknowledge_wildcards
from training_cluster.cluster.node_policies import Rights
from training_cluster.overrides.nodes import COMPUTE, own_roles
from training_cluster.permissions.scopes import node_roles


def users_role(scope: Construct, rights: Rights, config: Mapping[str, Any]) -> iam.Role:
    """Make the role, which the compute nodes of a cluster config may assume.

    The roles of nodes that ParallelCluster makes do not exist yet, so the trust is in the account, and a
    condition names their path.
    """
    nodes = {"ArnLike": {"aws:PrincipalArn": trusted_roles(rights.settings.cluster_name, config)}}
    role = iam.Role(
        scope,
        "UsersRole",
        assumed_by=iam.AccountRootPrincipal().with_conditions(nodes).with_session_tags(),
        description="Jobs of the people who share the cluster, in a session of each user",
    )
    for statement in rights.of_users:
        role.add_to_policy(statement)
    # A job keeps what nodes are given.
    for number, arn in enumerate(rights.settings.own_policies):
        role.add_managed_policy(iam.ManagedPolicy.from_managed_policy_arn(scope, f"UsersPolicy{number}", arn))
    wide = [resource for statement in rights.of_users for resource in statement.resources]
    acknowledge_wildcards(role, wide, "a user's own folder, and what the flags grant to all jobs")
    return role


def trusted_roles(cluster_name: str, config: Mapping[str, Any]) -> list[str]:
    """Return the ARNs of the compute nodes' roles, or patterns of those that ParallelCluster makes."""
    own = [arn for arn, kinds in own_roles(config).items() if COMPUTE in kinds]
    return [*node_roles(cluster_name, config.get("Iam", {}).get("ResourcePrefix")), *own]
