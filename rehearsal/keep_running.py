"""Environment variables of a rehearsal that is left running (KEEP=1)."""

from __future__ import annotations

import shlex
from pathlib import Path

from rehearsal.bootstrap import node_variables
from rehearsal.local_aws.address import PROGRAMS, REAL_ACCOUNT_VARIABLES, LocalAwsAddress
from rehearsal.local_slurm import LocalSlurm
from rehearsal.narrator import Narrator
from rehearsal.workspace import VENVS, Workspace
from training_cluster.paths import ROOT

# On a machine with a proxy, its own ports are reached without it.
_OF_AWS = ("AWS_", "NO_PROXY", "no_proxy")


def jobs_tmp(workspace: Workspace) -> Path:
    """Make and return the jobs' TMPDIR, a folder of its own on each node that is separate."""
    temporary = workspace.node / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return temporary


def job_variables(workspace: Workspace, address: LocalAwsAddress) -> dict[str, str]:
    """Return the environment variables with which a job is submitted to the local Slurm.

    AWS's variables, which replace a node's instance profile, lead to the local AWS and to no real account.
    """
    of_aws = {name: value for name, value in address.client_variables().items() if name.startswith(_OF_AWS)}
    return (
        of_aws
        | node_variables(workspace)
        | {
            "TRAINING_VENVS": str(VENVS),
            "TRAINING_REHEARSAL": "1",
            # Replaces CUDA for a library that needs it (gpt2-megatron).
            "PYTHONPATH": str(ROOT / "rehearsal" / "shims"),
            "TMPDIR": str(jobs_tmp(workspace)),
        }
    )


def leave_running(
    *, workspace: Workspace, address: LocalAwsAddress, slurm: LocalSlurm, family: str, narrator: Narrator
) -> None:
    """Write a file for shells to source, and print what can be done with it."""
    variables = address.client_variables() | job_variables(workspace, address)
    variables["SLURM_CONF"] = slurm.client_env()["SLURM_CONF"]
    lines = [f"unset {' '.join(REAL_ACCOUNT_VARIABLES)}"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in sorted(variables.items())]
    tools = f"{ROOT / '.venv' / 'bin'}:{PROGRAMS}:{ROOT / 'node_modules' / '.bin'}"
    lines.append(f'export PATH={shlex.quote(tools)}:"$PATH":/usr/sbin')
    workspace.env_file.touch(mode=0o600)  # it names the access key of the local AWS
    workspace.env_file.write_text("\n".join(lines) + "\n")
    narrator.console.print(
        "\n[bold]Left running[/] (KEEP=1). In a shell of your own:\n"
        f"   source {workspace.env_file}\n"
        "   trainctl status\n"
        "   trainctl submit gpt2 --nodes 2 --follow\n"
        "   aws cloudformation describe-stacks\n"
        f"   npx cdk deploy TrainingClusterStack -c family={family} -c nodes=4\n"
        "   sinfo -a\n"
        "End it with: make stop"
    )
