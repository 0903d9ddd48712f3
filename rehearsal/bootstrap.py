"""A node's bootstrap as ParallelCluster runs it: the script that the config names is fetched and run."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from rehearsal.deployed import BootstrapAction
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.problems import RehearsalError
from rehearsal.workspace import VENVS, Workspace
from training_cluster.paths import ROOT

# Requests to this machine's own ports bypass its proxy.
_OF_AWS = ("AWS_", "NO_PROXY", "no_proxy")
CLUSTER_CONFIG = "cluster-config.yaml"
"""Name of the cluster config in the node's folder, which ParallelCluster keeps in a shared folder."""
SHIMS = ROOT / "rehearsal" / "shims"
"""Folder of modules that replace CUDA for a library that needs it (gpt2-megatron)."""
_NOT_HERE = "skipped (this is no ParallelCluster node)"


def node_variables(workspace: Workspace) -> dict[str, str]:
    """Return the folders that replace /fsx, /efs, /etc and /opt of real nodes, as environment variables."""
    return {
        "TRAINING_SHARED": str(workspace.shared),
        "TRAINING_EFS": str(workspace.efs),
        "TRAINING_ROOT": str(workspace.node / "root"),
        "TRAINING_ETC": str(workspace.node / "etc"),
        "TRAINING_CLUSTER_CONFIG": str(workspace.node / CLUSTER_CONFIG),
    }


def jobs_tmp(workspace: Workspace) -> Path:
    """Create and return the jobs' TMPDIR. Each separate node has its own folder at this path."""
    temporary = workspace.node / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return temporary


def job_files(workspace: Workspace) -> Path:
    """Create and return the folder in which prologs record jobs (bootstrap/metrics/job-file.sh)."""
    folder = workspace.node / "root" / "run" / "training-cluster-metrics"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def own_folders(workspace: Workspace) -> list[Path]:
    """Create and return the folders that each separate node has for itself."""
    return [jobs_tmp(workspace), job_files(workspace)]


def job_variables(workspace: Workspace, address: LocalAwsAddress) -> dict[str, str]:
    """Return the environment variables of a job that is submitted to the local Slurm.

    AWS's variables replace a node's instance profile. They name the local AWS, never a real account.
    """
    of_aws = {name: value for name, value in address.client_variables().items() if name.startswith(_OF_AWS)}
    return (
        of_aws
        | node_variables(workspace)
        | {
            "TRAINING_VENVS": str(VENVS),
            "TRAINING_REHEARSAL": "1",
            "PYTHONPATH": str(SHIMS),
            "TMPDIR": str(jobs_tmp(workspace)),
        }
    )


def node_service(workspace: Workspace) -> list[str]:
    """Return the command of a node's root service (steps/85-start-timers.sh); no EC2 answers it here."""
    variables = node_variables(workspace) | {"AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9"}
    program = "opt/training-cluster/bundles/current/bootstrap/services/node_service.py"
    return [
        *("env", *(f"{name}={value}" for name, value in variables.items())),
        *("python3", str(workspace.node / "root" / program)),
    ]


def prolog_folder(workspace: Workspace) -> Path:
    """Return the folder of the scripts that Slurm runs before each job, made by the head node's bootstrap."""
    return workspace.node / "root" / "opt" / "slurm" / "etc" / "scripts" / "prolog.d"


def boot(
    *,
    node_type: str,
    action: BootstrapAction,
    cluster_config: str,
    address: LocalAwsAddress,
    workspace: Workspace,
    say: Callable[[str], None],
) -> None:
    """Run a node's custom action from the deployed bucket, at its boot or at an update of the cluster.

    Args:
        node_type: HeadNode or ComputeFleet.
        cluster_config: text of the deployed config, which ParallelCluster puts in a shared folder.
        say: takes each line of the script's output.

    Raises:
        RehearsalError: the script is missing or failed; with its output.
    """
    if action.left_out:
        say(f"{action.left_out} of your own scripts run on ParallelCluster's nodes only")
    environment = {
        **address.client_environment(),
        **node_variables(workspace),
        **dict([workspace.marker]),
        "NODE_TYPE": node_type,
    }
    Path(environment["TRAINING_CLUSTER_CONFIG"]).write_text(cluster_config)
    script = workspace.node / f"{node_type}.sh"
    fetch = ["aws", "s3", "cp", "--only-show-errors", action.script, str(script)]
    for command in (fetch, ["bash", str(script), *action.args]):
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        said = f"{done.stdout}{done.stderr}".strip()
        lines = done.stdout.splitlines()
        skipped = [line for line in lines if _NOT_HERE in line]
        for line in lines:
            if line not in skipped:
                say(line)
        if skipped:
            say(f"{len(skipped)} more steps run on ParallelCluster's nodes only")
        if done.returncode:
            raise RehearsalError(f"The {node_type}'s bootstrap failed: `{' '.join(command)}`:\n{said}")
