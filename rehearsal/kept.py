"""A rehearsal that is left running (KEEP=1): what a shell needs to talk to it."""

from __future__ import annotations

import shlex

from rehearsal.bootstrap import node_variables
from rehearsal.local_aws.address import REAL_ACCOUNT_VARIABLES, LocalAwsAddress
from rehearsal.local_slurm import LocalSlurm
from rehearsal.narrator import Narrator
from rehearsal.workspace import PROJECT, VENVS, Workspace


def job_variables(workspace: Workspace) -> dict[str, str]:
    """Environment variables with which a job is submitted to the local Slurm."""
    temporary = workspace.node / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return node_variables(workspace) | {
        "TRAINING_VENVS": str(VENVS),
        "TRAINING_REHEARSAL": "1",
        "TMPDIR": str(temporary),
    }


def leave_running(
    *, workspace: Workspace, address: LocalAwsAddress, slurm: LocalSlurm, family: str, narrator: Narrator
) -> None:
    """Write a file for shells to source, and say what can be done with it."""
    variables = address.client_variables() | job_variables(workspace)
    variables["SLURM_CONF"] = slurm.client_env()["SLURM_CONF"]
    lines = [f"unset {' '.join(REAL_ACCOUNT_VARIABLES)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    tools = f"{PROJECT / '.venv' / 'bin'}:{PROJECT / 'node_modules' / '.bin'}"
    lines.append(f'export PATH={shlex.quote(tools)}:"$PATH":/usr/sbin')
    workspace.env_file.write_text("\n".join(lines) + "\n")
    narrator.console.print(
        "\n[bold]Left running[/] (KEEP=1). In a shell of your own:\n"
        f"   source {workspace.env_file}\n"
        "   sinfo -a\n"
        "   aws cloudformation describe-stacks\n"
        f"   cdk deploy TrainingClusterStack -c family={family} -c nodes=4\n"
        "   sbatch --nodes 2 $TRAINING_SHARED/training/job.slurm gpt2\n"
        "End it with: make stop"
    )
