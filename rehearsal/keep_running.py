"""Environment variables of a rehearsal that is left running (KEEP=1)."""

import shlex
from collections.abc import Iterable

from rehearsal.bootstrap import job_variables
from rehearsal.head_node import MAX_NODES
from rehearsal.local_aws.address import PROGRAMS, REAL_ACCOUNT_VARIABLES, LocalAwsAddress
from rehearsal.local_slurm import LocalSlurm
from rehearsal.narrator import Narrator
from rehearsal.workspace import Workspace
from training_cluster.paths import ROOT


def next_steps(
    *, workspace: Workspace, workload: str, nodes: int, metrics_url: str | None = None
) -> tuple[str, ...]:
    """Return commands for a new shell, which work one after another; `metrics_url` is None without one."""
    look = (f"trainctl top --url {metrics_url}",) if metrics_url else ()
    more = nodes + 2 if nodes + 2 <= MAX_NODES else nodes - 2
    return (
        f"cd {shlex.quote(str(ROOT))}",
        f"source {shlex.quote(str(workspace.env_file))}",
        "trainctl status",
        f"trainctl submit {workload} --nodes {nodes} --follow",
        "aws cloudformation describe-stacks",
        f"trainctl deploy -c nodes={more} --yes",
        "sinfo -a",
        *look,
        f"trainctl submit {workload} --nodes {more} --follow",
    )


def leave_running(
    *,
    workspace: Workspace,
    address: LocalAwsAddress,
    slurm: LocalSlurm,
    steps: Iterable[str],
    narrator: Narrator,
) -> None:
    """Write a file for shells to source, and print what can be done with it."""
    variables = address.client_variables() | job_variables(workspace, address)
    variables["SLURM_CONF"] = slurm.client_env()["SLURM_CONF"]
    lines = [f"unset {' '.join(REAL_ACCOUNT_VARIABLES)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    tools = f"{ROOT / '.venv' / 'bin'}:{PROGRAMS}:{ROOT / 'node_modules' / '.bin'}"
    lines.append(f'export PATH={shlex.quote(tools)}:"$PATH":/usr/sbin')
    workspace.env_file.touch(mode=0o600)  # it contains the access key of the local AWS
    workspace.env_file.write_text("\n".join(lines) + "\n")
    narrator.console.print("\n[bold]Left running[/] (KEEP=1). In a new shell, for example:")
    for step in steps:
        narrator.say(step)
    narrator.console.print(
        "A deploy reaches the local Slurm and the shared folders, as on AWS.\nStop it with: make stop"
    )
