"""Submits a workload by `sbatch /fsx/training/job.slurm WORKLOAD`, after checks."""

import re
import shlex
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ops.account.deploy_command import deploy_command
from ops.account.deployed_flags import flags_or_none
from ops.account.head_node import LIMIT_S, CommandError, HeadNode, NoEndError, NotStartedError
from ops.jobs.lookup import check_time, cluster_option, find_job, find_partition, read_facts
from ops.jobs.nodes import Partition
from ops.jobs.secrets import check_files, refuse_secret
from ops.jobs.settings import ask_workload, workloads_with
from ops.jobs.sizes import check_sizes
from ops.registry import check_image
from ops.usage import OpsError, UsageError
from training_cluster.catalog.families import load_base
from training_cluster.problems import did_you_mean

RUN_NAME, CONTAINER_IMAGE, INIT_FROM = "RUN_NAME", "CONTAINER_IMAGE", "INIT_FROM"
SPARES, MIN_NODES = "SPARES", "MIN_NODES"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Name of a run, which job.slurm takes for its folder.
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_WORKLOAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_NODES = re.compile(r"(?P<least>\d+)(?:-(?P<most>\d+))?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# The folder of the shared modules, beside those of the workloads.
_SHARED_MODULES = "trainkit"
_SUBMIT = "submit-once.sh"


@dataclass(frozen=True, kw_only=True)
class JobRequest:
    """A request to submit one job."""

    workload: str
    nodes: int
    """Largest number of nodes that train."""
    partition: str | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the job."""
    arguments: Sequence[str] = ()
    """Arguments of the workload."""
    after: str | None = None
    """Id of a job that has to succeed first."""
    time_limit: str | None = None
    """Time limit in a form of sbatch: minutes, or [days-]hours:minutes:seconds."""
    node_list: tuple[str, ...] = ()
    """Names of the nodes to run on, if not any."""
    deadline: str | None = None
    """Time in a form of sbatch after which Slurm removes the job, if it has not ended by then."""

    @property
    def fewest(self) -> int:
        """Smallest number of nodes that train."""
        return min(self.nodes, self._number(MIN_NODES) or self.nodes)

    @property
    def spares(self) -> int:
        """Number of the job's nodes that do not train."""
        return self._number(SPARES)

    def _number(self, name: str) -> int:
        text = self.settings.get(name, "")
        return int(text) if text.isdecimal() else 0  # --env's are not checked


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A job that Slurm accepted."""

    job_id: str
    command: str
    """Command that ran on the head node."""
    notes: tuple[str, ...]


def read_settings(
    pairs: Sequence[str],
    *,
    run: str | None,
    container: str | None = None,
    spares: int | None = None,
    fewest: int | None = None,
    option: str = "--set",
) -> dict[str, str]:
    """Read KEY=VALUE pairs, and the settings that have an option of their own.

    Args:
        option: option that gave the pairs, for messages.

    Raises:
        UsageError: a pair is malformed or holds a secret, or two options contradict each other.
    """
    settings: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not _VARIABLE.fullmatch(name):
            raise UsageError(
                f'{option} "{pair}" is not KEY=VALUE\n'
                "  allowed: a KEY of letters, digits and _, which does not begin with a digit\n"
                f"  type:    {option} {'MAX_STEPS=200' if option == '--set' else 'MY_VARIABLE=1'}"
            )
        if _CONTROL.search(value):
            raise UsageError(f"{option} {name}: the value contains a control character, such as a line end.")
        refuse_secret(name, value, option=option)
        settings[name] = value
    if container is not None and not container.strip():
        raise UsageError(
            "--container: no image is given.\n  type:    --container nvcr.io/nvidia/pytorch:25.09-py3"
        )
    values = {
        (CONTAINER_IMAGE, "--container"): container,
        (RUN_NAME, "--name"): run,
        (SPARES, "--spares"): spares,
        (MIN_NODES, "the fewest nodes of --nodes,"): fewest,
    }
    for (name, given), wanted in values.items():
        if wanted is not None and settings.setdefault(name, str(wanted)) != str(wanted):
            raise UsageError(f"{given} {wanted} and --set {name}={settings[name]}: give one of them.")
    if RUN_NAME in settings and not _RUN.fullmatch(settings[RUN_NAME]):
        raise UsageError(
            f'"{settings[RUN_NAME]}" cannot name a run: the name becomes a folder.\n'
            "  allowed: letters, digits, dots, _ and -\n  type:    --name my-run"
        )
    return settings


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


def sbatch_command(request: JobRequest, token: str = "") -> list[str]:
    """Return the command for the head node.

    Args:
        token: comment of the job, by which a second call recognises it; empty for none.
    """
    shared = load_base().shared_dir
    most = request.nodes + request.spares
    least = request.fewest if MIN_NODES in request.settings else most
    return [
        *(
            ["env", *(f"{name}={value}" for name, value in request.settings.items())]
            if request.settings
            else []
        ),
        *(
            "sbatch",
            "--parsable",
            f"--nodes={most if least == most else f'{least}-{most}'}",
            f"--job-name={request.workload}",
        ),
        *([f"--partition={request.partition}"] if request.partition else []),
        *([f"--nodelist={','.join(request.node_list)}"] if request.node_list else []),
        *([f"--dependency=afterok:{request.after}"] if request.after else []),
        *([f"--time={request.time_limit}"] if request.time_limit else []),
        *([f"--deadline={request.deadline}"] if request.deadline else []),
        f"--output={output_path('%j')}",
        *([f"--comment={token}"] if token else []),
        *(f"{shared}/training/job.slurm", request.workload, *request.arguments),
    ]


def read_nodes(text: str) -> tuple[int, int | None]:
    """Read N or MIN-MAX; return the largest number of nodes, and the fewest if they differ.

    Raises:
        UsageError: the text is neither.
    """
    found = _NODES.fullmatch(text)
    least, most = (int(found["least"]), int(found["most"] or found["least"])) if found else (0, 0)
    if not 0 < least <= most:
        raise UsageError(
            f'--nodes "{text}" is not a number of nodes.\n'
            "  allowed: a number from 1 on, or the fewest and the most: MIN-MAX\n"
            "  type:    --nodes 2, or --nodes 2-4 to start on what is free"
        )
    return most, least if least < most else None


def output_path(job_id: str, folder: str = "") -> str:
    """Return the path of the output of a job that trainctl submitted, in the folder of a user or of all."""
    return f"{load_base().shared_dir}/{folder or 'runs'}/job-{job_id}.log"


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
