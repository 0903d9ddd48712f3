"""Submits a workload by `sbatch /fsx/training/job.slurm WORKLOAD`, after checks."""

import re
import shlex
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ops.account.deploy_command import deploy_command
from ops.account.deployed_flags import flags_or_none
from ops.account.head_node import LIMIT_S, CommandError, HeadNode, NoEndError, NotStartedError
from ops.jobs.lookup import check_time, cluster_option, find_job, find_partition, read_facts
from ops.jobs.nodes import Partition
from ops.jobs.request import CONTAINER_IMAGE, INIT_FROM, MIN_NODES, JobRequest, sbatch_command
from ops.jobs.secrets import check_files
from ops.jobs.settings import ask_workload, workloads_with
from ops.jobs.sizes import check_sizes
from ops.registry import check_image
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base
from training_cluster.problems import did_you_mean

_WORKLOAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
# The folder of the shared modules, beside those of the workloads.
_SHARED_MODULES = "trainkit"
_SUBMIT = "submit-once.sh"


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A job that Slurm accepted."""

    job_id: str
    command: str
    """Command that ran on the head node."""
    notes: tuple[str, ...]


def check(request: JobRequest, head_node: HeadNode) -> tuple[str, ...]:
    """Check the request with the cluster; return notes about when the job can start.

    Raises:
        OpsError: the job cannot run.
        botocore's errors.
    """
    where = cluster_option(head_node.cluster_name)
    _check_workload(request.workload, head_node)
    _check_mail(request.settings, head_node)
    check_files(request.settings, head_node)
    _check_image(request.settings.get(CONTAINER_IMAGE, ""), head_node)
    if CONTAINER_IMAGE not in request.settings:  # an image has folders of its own
        _check_weights(request.settings.get(INIT_FROM, ""), head_node)
    partition, notes = _check_nodes(request, head_node), tuple[str, ...]()
    time_limit, account = (request.settings.get(f"SBATCH_{word}") for word in ("TIMELIMIT", "ACCOUNT"))
    check_time(request.time_limit or time_limit, account, partition.name, head_node)
    if request.workload in workloads_with("check_job"):
        facts, settings = read_facts(partition.name, head_node), dict(request.settings)
        if request.fewest == request.nodes:
            settings.pop(MIN_NODES, None)  # of spares: no range
        for nodes in dict.fromkeys((request.fewest, request.nodes)):
            asked = ("check_job", request.workload, settings, request.arguments)
            said = ask_workload(*asked, nodes=nodes, facts=facts)
        notes = check_sizes(
            said, facts, head_node, nodes=request.nodes, reads_image=CONTAINER_IMAGE in settings
        )
    if request.after and find_job(request.after, head_node) is None:
        # Slurm itself treats a job that it does not know as one that succeeded.
        raise OpsError(
            f"Slurm does not know job {request.after}, so nothing can wait for it.\n"
            f"  type:   trainctl jobs{where}"
        )
    closed = () if partition.availability == "up" else (_closed(partition, head_node.cluster_name),)
    return (*notes, *closed, *_ends_of_blocks(partition, head_node))


def submit(request: JobRequest, head_node: HeadNode) -> Submitted:
    """Check the request, and call sbatch.

    Raises:
        OpsError: the job cannot run, or Slurm refused it, with Slurm's message.
        botocore's errors.
    """
    notes = check(request, head_node)
    token = f"trainctl-{uuid.uuid4()}"
    command = sbatch_command(request, token)
    try:
        said = _call_once(command, token, head_node)
    except CommandError as error:
        words = str(error).removeprefix(f"{_SUBMIT}: ")
        raise OpsError(f"Slurm refused the job: {words}\n  typed:  {shlex.join(command)}") from None
    job_id = said.strip().partition(";")[0]  # ID;CLUSTER in a federation
    return Submitted(job_id=job_id, command=shlex.join(command), notes=notes)


def _call_once(command: Sequence[str], token: str, head_node: HeadNode) -> str:
    """Call sbatch, and again if the first call had no answer; the token prevents a second job."""
    try:
        return head_node.run_script(_SUBMIT, token, *command, limit_s=LIMIT_S)
    except NoEndError:
        pass
    try:
        return head_node.run_script(_SUBMIT, token, *command, limit_s=LIMIT_S)
    except (NoEndError, NotStartedError):
        where = cluster_option(head_node.cluster_name)
        raise OpsError(
            "sbatch was called twice, and gave no answer. Slurm may have accepted the job, once at most.\n"
            f"  type:   trainctl jobs{where}, and submit it again only if the list lacks it"
        ) from None


def _check_workload(workload: str, head_node: HeadNode) -> None:
    folder = f"{load_base().shared_dir}/training"
    if _WORKLOAD.fullmatch(workload) and head_node.can_read(f"{folder}/{workload}/train.sh"):
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
        f"  allowed: {', '.join(there) or 'none: did the deploy succeed?'}\n"
        f"  type:    trainctl submit {there[0] if there else 'gpt2'} --nodes 2"
        f"{cluster_option(head_node.cluster_name)}, or once it is in assets/training: "
        f"{deploy_command(head_node.cluster_name)}"
    )


def _check_mail(settings: Mapping[str, str], head_node: HeadNode) -> None:
    """Look for addresses of mail before nodes start; a cluster whose flags are unknown may have some."""
    flags = (
        flags_or_none(head_node.cluster_name, head_node.client) if settings.get("NOTIFY") == "mail" else None
    )
    if flags and not flags.get("job_emails"):
        raise OpsError(
            f"NOTIFY=mail: {head_node.cluster_name} has no address for mail of jobs.\n"
            f"  type:   {deploy_command(head_node.cluster_name, 'job_emails=USER=ADDRESS')}"
        )


def _check_image(image: str, head_node: HeadNode) -> None:
    """Look for an image that is a file or in Amazon ECR, before nodes start for it."""
    if image.startswith("/") and not head_node.can_read(image):
        folder = f"{load_base().shared_dir}/images"
        raise OpsError(
            f"There is no image {image} on {head_node.cluster_name} that you can read.\n"
            f"  type:    trainctl connect{cluster_option(head_node.cluster_name)} -- ls -l {folder}\n"
            "  or name an image of a registry: --container nvcr.io/nvidia/pytorch:25.09-py3"
        )
    if head_node.client:
        check_image(image, head_node.client)


def _check_weights(init_from: str, head_node: HeadNode) -> None:
    """Look for weights that are a folder or a file, before nodes start for them."""
    if init_from.startswith(("./", "../")):
        raise UsageError(
            f"--set {INIT_FROM}={init_from}: the job starts in another folder.\n"
            f"  type:    the whole path, such as {load_base().shared_dir}/checkpoints/NAME"
        )
    if init_from.startswith("/") and not head_node.can_read(init_from):
        raise OpsError(
            f"--set {INIT_FROM}={init_from}: there is no such path on {head_node.cluster_name} that you can "
            "read.\n"
            f"  type:    trainctl connect{cluster_option(head_node.cluster_name)} -- ls -l "
            f"{load_base().shared_dir}/checkpoints"
        )


def _check_nodes(request: JobRequest, head_node: HeadNode) -> Partition:
    partition = find_partition(request.partition, head_node)
    if (needed := request.nodes + request.spares) > partition.size:
        raise OpsError(
            f"The partition {partition.name} has fewer than {needed} nodes"
            f"{f', {request.spares} of them spare' if request.spares else ''}.\n"
            f"  allowed: 1 to {partition.size}\n"
            f"  type:    --nodes {max(1, partition.size - request.spares)}, or "
            f"{deploy_command(head_node.cluster_name, f'nodes={needed}')}"
        )
    return partition


def _ends_of_blocks(partition: Partition, head_node: HeadNode) -> Iterator[str]:
    """Yield what still fits before a Capacity Block ends, of the reservations of services/block_ends.py."""
    for line in head_node.run("sinfo", "--noheader", "--reservation", reads_only=True).splitlines():
        name, _, rest = line.strip().partition(" ")
        block = name.removeprefix("training-cluster-")
        if block != name and re.search(rf"(^|,){partition.name}-(st|dy)-", rest.split()[-1]):
            begins = rest.split()[1]
            yield (
                f"The Capacity Block {block} ends: its nodes are free until {begins}, the head node's time. "
                "A job whose --time is longer waits, and one without --time."
            )


def _closed(partition: Partition, cluster_name: str) -> str:
    return (
        f"The partition {partition.name} starts no jobs now ({partition.availability}), so this one waits. "
        f"trainctl status{cluster_option(cluster_name)} shows the state of the compute fleet."
    )
