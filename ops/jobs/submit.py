"""Submits a workload: what `sbatch /fsx/training/job.slurm WORKLOAD` does, checked before."""

from __future__ import annotations

import re
import shlex
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ops.account.head_node import LIMIT_S, CommandError, HeadNode, NoEndError, NotStartedError
from ops.jobs.lookup import find_job, on, read_nodes
from ops.jobs.nodes import Partition
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base
from training_cluster.problems import did_you_mean

RUN_NAME = "RUN_NAME"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# The folder of a run, of job.slurm's workload.
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WORKLOAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# A folder beside the workloads that is none: what they share.
_SHARED_MODULES = "trainkit"
_SUBMIT = "submit-once.sh"


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is to be submitted."""

    workload: str
    nodes: int
    partition: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the job."""
    arguments: Sequence[str] = ()
    """Of the workload."""
    after: str | None = None
    """Id of a job that has to end well before."""
    time_limit: str | None = None
    """As sbatch takes it: minutes, or [days-]hours:minutes:seconds."""


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """What sbatch made of it."""

    job_id: str
    command: str
    """What was typed on the head node."""
    notes: tuple[str, ...]


def read_settings(pairs: Sequence[str], *, run: str | None) -> dict[str, str]:
    """Read KEY=VALUE pairs and the run's name. Raises UsageError."""
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not _VARIABLE.fullmatch(name):
            raise UsageError(
                f'--set "{pair}" is not KEY=VALUE\n'
                "  allowed: a KEY of letters, digits and _, as the shell's variables\n"
                "  type:    --set MAX_STEPS=200"
            )
        if _CONTROL.search(value):
            raise UsageError(f"--set {name}: the value has a control character in it, such as a line's end.")
        settings[name] = value
    if run is not None and settings.setdefault(RUN_NAME, run) != run:
        raise UsageError(f"--name {run} and --set {RUN_NAME}={settings[RUN_NAME]}: give one of them.")
    if RUN_NAME in settings and not _RUN.fullmatch(settings[RUN_NAME]):
        raise UsageError(
            f'"{settings[RUN_NAME]}" can name no run: it becomes a folder.\n'
            "  allowed: letters, digits, dots, _ and -\n  type:    --name my-run"
        )
    return settings


def submit(wish: Wish, head_node: HeadNode) -> Submitted:
    """Check, and call sbatch.

    Raises:
        OpsError: it cannot run, or Slurm refused it, with its own words.
        botocore's errors.
    """
    _check_workload(wish.workload, head_node)
    partition = _check_nodes(wish, head_node)
    if wish.after and find_job(wish.after, head_node) is None:
        # Slurm itself takes a job that it does not know for one that has ended well.
        raise OpsError(
            f"Slurm does not know job {wish.after}, so nothing can wait for it.\n  type:   trainctl jobs"
        )
    token = f"trainctl-{uuid.uuid4()}"
    command = sbatch_command(wish, token)
    try:
        said = _call_once(command, token, head_node)
    except CommandError as error:
        words = str(error).removeprefix(f"{_SUBMIT}: ")
        raise OpsError(f"Slurm did not take the job: {words}\n  typed:  {shlex.join(command)}") from None
    job_id = said.strip().partition(";")[0]  # ID;CLUSTER in a federation
    notes = () if partition.availability == "up" else (_closed(partition),)
    return Submitted(job_id=job_id, command=shlex.join(command), notes=notes)


def _call_once(command: Sequence[str], token: str, head_node: HeadNode) -> str:
    """Call sbatch, a second time where no end of the first was seen; the token keeps it to one job."""
    try:
        return head_node.run_script(_SUBMIT, token, *command, limit_s=LIMIT_S)
    except NoEndError:
        pass
    try:
        return head_node.run_script(_SUBMIT, token, *command, limit_s=LIMIT_S)
    except (NoEndError, NotStartedError):
        where = on(head_node.cluster_name)
        raise OpsError(
            "Slurm was asked twice to take the job, and gave no answer. It may have the job, once at most.\n"
            f"  type:   trainctl jobs{where}, and submit it again only if it is not there"
        ) from None


def sbatch_command(wish: Wish, token: str) -> list[str]:
    """Write down what is typed on the head node.

    Args:
        token: the job's comment, by which it is known again.
    """
    shared = load_base().shared_dir
    return [
        *(["env", *(f"{name}={value}" for name, value in wish.settings.items())] if wish.settings else []),
        *("sbatch", "--parsable", f"--nodes={wish.nodes}", f"--job-name={wish.workload}"),
        *([f"--partition={wish.partition}"] if wish.partition else []),
        *([f"--dependency=afterok:{wish.after}"] if wish.after else []),
        *([f"--time={wish.time_limit}"] if wish.time_limit else []),
        *(f"--output={output_of('%j')}", f"--comment={token}"),
        *(f"{shared}/training/job.slurm", wish.workload, *wish.arguments),
    ]


def output_of(job_id: str) -> str:
    """Where the output of a job that was submitted here lies on the cluster."""
    return f"{load_base().shared_dir}/runs/job-{job_id}.log"


def _check_workload(workload: str, head_node: HeadNode) -> None:
    folder = f"{load_base().shared_dir}/training"
    if _WORKLOAD.fullmatch(workload):
        try:
            head_node.run("ls", f"{folder}/{workload}/train.sh", reads_only=True)
        except CommandError:
            pass
        else:
            return
    listed = head_node.run("ls", "-1", "-p", folder, reads_only=True).splitlines()
    there = sorted(
        name
        for each in listed
        if each.endswith("/") and _WORKLOAD.fullmatch(name := each[:-1]) and name != _SHARED_MODULES
    )
    raise OpsError(
        f'There is no workload "{workload}" in {folder} of {head_node.cluster_name}.'
        f"{did_you_mean(workload, there)}\n"
        f"  allowed: {', '.join(there) or 'none: did the deploy end well?'}\n"
        f"  type:    trainctl submit {there[0] if there else 'gpt2'} --nodes 2, or npx cdk deploy "
        "TrainingClusterStack once it is in assets/training"
    )


def _check_nodes(wish: Wish, head_node: HeadNode) -> Partition:
    partitions, _ = read_nodes(head_node)
    if wish.partition is None:
        partition = next((each for each in partitions if each.is_default), None)
        if partition is None:
            raise OpsError(
                f"{head_node.cluster_name} has no default partition.\n"
                f"  type:    --partition, one of: {', '.join(each.name for each in partitions) or 'none'}"
            )
    else:
        names = [each.name for each in partitions]
        if wish.partition not in names:
            raise OpsError(
                f"{head_node.cluster_name} has no partition {wish.partition}."
                f"{did_you_mean(wish.partition, names)}\n  allowed: {', '.join(names) or 'none'}"
            )
        partition = partitions[names.index(wish.partition)]
    if wish.nodes > partition.size:
        raise OpsError(
            f"{wish.nodes} nodes are more than the partition {partition.name} has.\n"
            f"  allowed: 1 to {partition.size}\n"
            f"  type:    --nodes {partition.size}, or npx cdk deploy ... -c nodes={wish.nodes}"
        )
    return partition


def _closed(partition: Partition) -> str:
    return (
        f"The partition {partition.name} starts no jobs now ({partition.availability}): this one waits. "
        "trainctl status says what the compute fleet does."
    )
