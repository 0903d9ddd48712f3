"""Lists the commands that delete the remaining resources, in the order that AWS requires. Pure."""

from collections.abc import Mapping
from itertools import chain

from ops.account.stacks import Stack
from ops.teardown.accounting import database_commands, is_database
from ops.teardown.images import image_stack_steps, image_steps
from ops.teardown.remaining import Remaining
from ops.teardown.step import Step, destroy_stack_commands
from ops.teardown.storage import bucket_step, delete_bucket_commands, efs_step, lustre_steps
from training_cluster.stack_names import (
    ACCOUNTING_STACK,
    NETWORK_STACK,
    STORAGE_STACK,
    cluster_of_stack,
    destroy_command,
)

_DELETE_LOGS = "aws logs delete-log-group --log-group-name {}"


def steps(stacks: Mapping[str, Stack], remaining: Remaining, cluster_name: str) -> list[Step]:
    """Return every step, in the order in which they have to be typed."""
    clusters = [name for stack in stacks if (name := cluster_of_stack(stack))]
    found = (
        Step(
            title="The clusters: they use the network and the storage, which cannot go before them",
            commands=tuple(map(destroy_command, clusters)),
        ),
        *image_stack_steps(stacks),
        *image_steps(remaining.images),
        Step(
            title="AccountingStack: the database is kept",
            commands=destroy_stack_commands(stacks.get(ACCOUNTING_STACK), "accounting=new"),
        ),
        Step(
            title="The accounting database, with the history of all jobs",
            commands=tuple(database_commands(remaining.accounting)),
            is_data_lost=any(map(is_database, remaining.accounting)),
        ),
        Step(
            title="StorageStack: keeps the bucket and the file systems with all their data",
            commands=destroy_stack_commands(stacks.get(STORAGE_STACK)),
        ),
        *chain.from_iterable(map(lustre_steps, remaining.lustre)),
        *map(efs_step, remaining.efs),
        Step(
            title="The security groups of the deleted file systems",
            commands=tuple(f"aws ec2 delete-security-group --group-id {id_}" for id_ in remaining.groups),
        ),
        *map(bucket_step, remaining.buckets),
        Step(title="NetworkStack", commands=destroy_stack_commands(stacks.get(NETWORK_STACK))),
        Step(
            title=f"The logs, and the records of the cluster {cluster_name}",
            commands=(
                *map(_DELETE_LOGS.format, remaining.log_groups),
                *(f"aws ssm delete-parameter --name {name}" for name in remaining.parameters),
            ),
        ),
        Step(
            title="Resources that all clusters of ParallelCluster in this region share, other people's too: "
            "delete them only if no cluster exists any more",
            commands=(
                *map(_DELETE_LOGS.format, remaining.pcluster_log_groups),
                *chain.from_iterable(map(delete_bucket_commands, remaining.pcluster_buckets)),
            ),
        ),
    )
    return [step for step in found if step.commands]
