"""Finds a deployed cluster by its CloudFormation stack."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ops.account.deploy_command import deploy_command
from ops.account.session import ClientOf, every
from ops.account.stacks import cluster_of, cluster_stack_name, describe_stack, outputs_of
from ops.usage import OpsError


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """A deployed cluster, as its TrainingClusterStack describes it."""

    name: str
    stack_name: str
    status: str
    """Status of the cluster's TrainingClusterStack."""
    head_node_id: str | None
    """Instance id; None before the first deploy has succeeded."""
    region: str

    def require_head_node(self) -> str:
        """Return the instance id of the head node. Raises OpsError before there is one."""
        if self.head_node_id is None:
            raise OpsError(
                f"The cluster {self.name} has no head node yet: {self.stack_name} is {self.status}.\n"
                f"  type:   trainctl status --cluster {self.name} --watch"
            )
        return self.head_node_id


def describe_cluster(cluster_name: str, client: ClientOf) -> Cluster:
    """Read a cluster's stack. Raises OpsError if there is no such cluster, and botocore's errors."""
    cloudformation, stack_name = client("cloudformation"), cluster_stack_name(cluster_name)
    region = cloudformation.meta.region_name
    if (stack := describe_stack(stack_name, cloudformation)) is None:
        raise OpsError(_missing(cluster_name, region, every(cloudformation, "describe_stacks", "Stacks")))
    return Cluster(
        name=cluster_of(stack) or cluster_name,
        stack_name=stack_name,
        status=str(stack["StackStatus"]),
        head_node_id=outputs_of(stack).get("HeadNodeInstanceId"),
        region=region,
    )


def _missing(cluster_name: str, region: str, stacks: Iterable[Mapping[str, Any]]) -> str:
    there = sorted(name for each in stacks if (name := cluster_of(each)))
    if there:
        return (
            f"There is no cluster {cluster_name} in {region}.\n  allowed: {', '.join(there)}\n"
            f"  type:    --cluster {there[0]}"
        )
    return (
        f"There is no cluster in {region}.\n"
        f"  type:   {deploy_command(cluster_name)}, or another region: trainctl --region ..."
    )
