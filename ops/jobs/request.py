"""A request to submit a job: read from the command line, and written as sbatch's."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ops.jobs.secrets import refuse_secret
from ops.usage import UsageError
from training_cluster.catalog.families import load_base

RUN_NAME, CONTAINER_IMAGE, INIT_FROM = "RUN_NAME", "CONTAINER_IMAGE", "INIT_FROM"
SPARES, MIN_NODES = "SPARES", "MIN_NODES"
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Name of a run, which job.slurm takes for its folder.
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_NODES = re.compile(r"(?P<least>\d+)(?:-(?P<most>\d+))?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


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
