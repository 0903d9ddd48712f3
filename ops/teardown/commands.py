"""Lists the commands that delete the remaining resources, in the order that AWS requires. Pure."""

from collections.abc import Iterator
from itertools import chain

from ops.account.stacks import Stack
from ops.teardown.accounting import accounting_steps
from ops.teardown.images import image_stack_steps, image_steps
from ops.teardown.remaining import Lustre, Remaining
from ops.teardown.step import Step, destroy_stack_commands
from training_cluster.stack_names import (
    ACCOUNTING_STACK,
    NETWORK_STACK,
    STORAGE_STACK,
    cluster_of_stack,
    destroy_command,
)


def steps(stacks: dict[str, Stack], remaining: Remaining, cluster_name: str) -> list[Step]:
    """Return every step, in the order in which they have to be typed."""
    found = (
        *_clusters(stacks),
        *image_stack_steps(stacks),
        *image_steps(remaining.images),
        *accounting_steps(stacks.get(ACCOUNTING_STACK), remaining.accounting),
        *_storage_stack(stacks.get(STORAGE_STACK)),
        *_lustre(remaining),
        *_efs(remaining),
        *_groups(remaining),
        *_buckets(remaining),
        *_network(stacks.get(NETWORK_STACK)),
        *_regional(remaining, cluster_name),
    )
    return [step for step in found if step.commands]


def _clusters(stacks: dict[str, Stack]) -> Iterator[Step]:
    names = [name for stack in stacks if (name := cluster_of_stack(stack))]
    yield Step(
        title="The clusters: they use the network and the storage, which cannot go before them",
        commands=tuple(destroy_command(name) for name in names),
    )


def _storage_stack(stack: Stack | None) -> Iterator[Step]:
    if stack:
        yield Step(
            title="StorageStack: keeps the bucket and the file systems with all their data",
            commands=destroy_stack_commands(stack),
        )


def _lustre(remaining: Remaining) -> Iterator[Step]:
    for system in remaining.lustre:
        yield _export(system)
        yield _unlink(system)
        gone = f"aws fsx describe-file-systems --file-system-ids {system.id} 2>&1 | grep FileSystemNotFound"
        yield Step(
            title=f"{system.id}, with all files that are in no bucket; this takes minutes",
            commands=(
                f"aws fsx delete-file-system --file-system-id {system.id}",
                _wait_command(gone, times=60, seconds=30),
            ),
            is_data_lost=True,
        )


def _wait_command(condition: str, *, times: int, seconds: int) -> str:
    """Return a wait loop with a limit, for bash and zsh; a CLI call that fails is repeated."""
    return f"for n in {{1..{times}}}; do {condition} && break; sleep {seconds}; done"


def _export(system: Lustre) -> Step:
    folders = [link.folder.strip("/") for link in system.links if link.exports]
    tasks = [
        "aws fsx create-data-repository-task --type EXPORT_TO_REPOSITORY --report Enabled=false "
        f"--file-system-id {system.id} --paths {folder}"
        for folder in folders
    ]
    ends = (
        "aws fsx describe-data-repository-tasks --query 'DataRepositoryTasks[].Lifecycle' "
        f"--filters Name=file-system-id,Values={system.id}"
    )
    return Step(
        title=f"Export of files of {system.id} in {' and '.join(folders)} that the bucket lacks, if you need "
        "them; repeat the last command until it prints SUCCEEDED",
        commands=(*tasks, ends) if tasks else (),
    )


def _unlink(system: Lustre) -> Step:
    deletes = [
        "aws fsx delete-data-repository-association --no-delete-data-in-file-system "
        f"--association-id {link.id}"
        for link in system.links
    ]
    count = (
        "aws fsx describe-data-repository-associations --output text --query 'length(Associations)' "
        f"--filters Name=file-system-id,Values={system.id}"
    )
    ends = _wait_command(f"{count} | grep -x 0", times=60, seconds=10)
    where = " and ".join(f"{link.folder} to {link.target}" for link in system.links)
    return Step(title=f"Its links: {where}", commands=(*deletes, ends) if deletes else ())


def _efs(remaining: Remaining) -> Iterator[Step]:
    for system in remaining.efs:
        targets = system.mount_target_ids
        count = (
            "aws efs describe-mount-targets --output text --query 'length(MountTargets)' "
            f"--file-system-id {system.id}"
        )
        yield Step(
            title=f"{system.id}, with all files on it"
            + ("; the deletion of its mount targets takes a minute" if targets else ""),
            commands=(
                *(f"aws efs delete-mount-target --mount-target-id {id_}" for id_ in targets),
                *((_wait_command(f"{count} | grep -x 0", times=60, seconds=10),) if targets else ()),
                f"aws efs delete-file-system --file-system-id {system.id}",
            ),
            is_data_lost=True,
        )


def _groups(remaining: Remaining) -> Iterator[Step]:
    yield Step(
        title="The security groups of the deleted file systems",
        commands=tuple(f"aws ec2 delete-security-group --group-id {id_}" for id_ in remaining.groups),
    )


def _buckets(remaining: Remaining) -> Iterator[Step]:
    for name in remaining.buckets:
        yield Step(
            title=f"The bucket {name}, with every version of every object",
            commands=_delete_bucket_commands(name),
            is_data_lost=True,
        )


def _delete_bucket_commands(bucket: str) -> tuple[str, str]:
    # `aws s3 rm` leaves old versions and delete markers.
    versions = f'boto3.resource("s3").Bucket("{bucket}").object_versions'
    empty = f".venv/bin/python -c 'import boto3; {versions}.delete()'"
    return empty, f"aws s3api delete-bucket --bucket {bucket}"


def _network(stack: Stack | None) -> Iterator[Step]:
    if stack:
        yield Step(title="NetworkStack", commands=destroy_stack_commands(stack))


def _regional(remaining: Remaining, cluster_name: str) -> Iterator[Step]:
    delete = "aws logs delete-log-group --log-group-name {}"
    yield Step(
        title=f"The logs, and the records of the cluster {cluster_name}",
        commands=(
            *map(delete.format, remaining.log_groups),
            *(f"aws ssm delete-parameter --name {name}" for name in remaining.parameters),
        ),
    )
    yield Step(
        title="Resources that all clusters of ParallelCluster in this region share, other people's too: "
        "delete them only if no cluster exists any more",
        commands=(
            *map(delete.format, remaining.pcluster_log_groups),
            *chain.from_iterable(map(_delete_bucket_commands, remaining.pcluster_buckets)),
        ),
    )
