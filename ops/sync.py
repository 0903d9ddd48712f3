"""Copies folders between this machine and the cluster's bucket: a thin wrapper of `aws s3 sync`."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.account.deploy_command import deploy_command
from ops.account.session import ClientOf
from ops.account.stacks import describe_stack, outputs_of
from ops.connect import HOW_TO_INSTALL
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base
from training_cluster.problems import did_you_mean
from training_cluster.stack_names import STORAGE_STACK

# Folders of the bucket that users must not write to -> the reason.
_OWNED = {
    "bootstrap": "a deploy writes the scripts of nodes there: change assets/bootstrap/ and deploy",
    "logs": "failed deploys and image builds leave their logs there",
    "checkpoints": "Lustre exports {shared}/checkpoints there, and imports nothing: copy the files that a "
    "training starts from below datasets/",
    "training": "a deploy brings workloads to the nodes: put them into assets/training/ and deploy",
}


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """An `aws s3 sync` command that is ready to run."""

    source: str
    target: str
    command: tuple[str, ...]
    note: str
    """Sentence about the place where the files appear afterwards."""


def up(folder: Path, target: str, client: ClientOf, *, dry_run: bool) -> Transfer:
    """Prepare a copy from this machine to the bucket.

    Raises UsageError for a wrong folder or target, OpsError without a bucket, and botocore's errors.
    """
    if not folder.is_dir():
        problem = "is not a folder: give the folder that holds it" if folder.exists() else "does not exist"
        raise UsageError(f"{folder} {problem}.\n  type:    trainctl sync up FOLDER datasets/NAME")
    prefix, shared = _prefix(target, "trainctl sync up FOLDER datasets/NAME"), load_base().shared_dir
    first = prefix.partition("/")[0]
    if reason := _OWNED.get(first):
        raise UsageError(
            f"Users must not write below {first}/: {reason.format(shared=shared)}.\n"
            "  type:    trainctl sync up FOLDER datasets/NAME"
        )
    note = (
        f"Lustre imports new and changed objects to {shared}/{prefix} automatically."
        if first == "datasets"
        else f"The files are in the bucket only: Lustre imports datasets/, and nothing else, to {shared}."
    )
    remote = f"s3://{_bucket(client)}/{prefix}/"
    return _transfer(str(folder), remote, note, client, dry_run=dry_run)


def down(source: str, folder: Path, client: ClientOf, *, dry_run: bool) -> Transfer:
    """Prepare a copy from the bucket to this machine, which overwrites files that differ.

    Raises UsageError for a wrong folder or source, OpsError without a bucket, and botocore's errors.
    """
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is not a folder.\n  type:    trainctl sync down checkpoints/gpt2 FOLDER")
    prefix, shared = _prefix(source, "trainctl sync down checkpoints/gpt2 FOLDER"), load_base().shared_dir
    note = f"Lustre exports files of {shared}/checkpoints to the bucket automatically."
    bucket = _bucket(client)
    _check_there(bucket, prefix, client("s3"))
    remote, first = f"s3://{bucket}/{prefix}/", prefix.partition("/")[0]
    return _transfer(remote, str(folder), note if first == "checkpoints" else "", client, dry_run=dry_run)


def _prefix(path: str, example: str) -> str:
    """Return the prefix in the bucket for a path, which may be the one on nodes: /fsx/datasets/x."""
    parts = path.removeprefix(f"{load_base().shared_dir}/").strip("/").split("/")
    if not all(parts) or path.startswith("s3://") or {".", ".."} & {*parts}:
        raise UsageError(
            f'"{path}" is not a path in the bucket.\n'
            "  allowed: datasets/NAME, checkpoints/WORKLOAD/RUN, logs/CLUSTER, or a folder of your own\n"
            f"  type:    {example}"
        )
    return "/".join(parts)


def _bucket(client: ClientOf) -> str:
    cloudformation = client("cloudformation")
    region = cloudformation.meta.region_name
    if (stack := describe_stack(STORAGE_STACK, cloudformation)) is None:
        raise OpsError(
            f"There is no {STORAGE_STACK} in {region}, so there is no bucket.\n"
            f"  type:   {deploy_command(None)}, or another region: trainctl --region ..."
        )
    if (bucket := outputs_of(stack).get("BucketName")) is None:
        raise OpsError(
            f"{STORAGE_STACK} has no bucket yet: it is {stack['StackStatus']}.\n"
            "  type:   trainctl status --watch"
        )
    return bucket


def _check_there(bucket: str, prefix: str, s3: Any) -> None:
    """Refuse a prefix without objects, for which `aws s3 sync` copies nothing and succeeds."""
    if s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix}/", MaxKeys=1).get("KeyCount"):
        return
    parent = f"{prefix.rpartition('/')[0]}/".removeprefix("/")
    listed = s3.list_objects_v2(Bucket=bucket, Prefix=parent, Delimiter="/").get("CommonPrefixes", [])
    there = [str(each["Prefix"]).strip("/") for each in listed]
    raise OpsError(
        f"The bucket has no objects below {prefix}/.{did_you_mean(prefix, there)}\n"
        f"  allowed: {', '.join(there) or 'none: its parent is empty, too'}"
    )


def _transfer(source: str, target: str, note: str, client: ClientOf, *, dry_run: bool) -> Transfer:
    if not (aws := shutil.which("aws")):
        raise OpsError(f"Not on this machine: aws.\n  install: {HOW_TO_INSTALL['aws']}")
    region = client("s3").meta.region_name
    # Never --delete: files that are missing on one side are kept on the other.
    command = (aws, "s3", "sync", source, target, "--region", region, *(["--dryrun"] if dry_run else []))
    if not sys.stdout.isatty():  # the progress is written with carriage returns
        command += ("--no-progress",)
    return Transfer(source=source, target=target, command=command, note=note)
