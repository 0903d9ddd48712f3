"""Runs a node's bootstrap as ParallelCluster does: fetch the script that the config names, run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from rehearsal.deployed import BootstrapAction
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.narrator import Narrator
from rehearsal.problems import RehearsalError
from rehearsal.workspace import Workspace

_NOT_HERE = "skipped (this is no ParallelCluster node)"


def node_variables(workspace: Workspace) -> dict[str, str]:
    """Where a rehearsal's nodes keep what real ones keep under /fsx, /etc and /opt."""
    return {
        "TRAINING_SHARED": str(workspace.shared),
        "TRAINING_EFS": str(workspace.efs),
        "TRAINING_ROOT": str(workspace.node / "root"),
        "TRAINING_ETC": str(workspace.node / "etc"),
        "TRAINING_CLUSTER_CONFIG": str(workspace.node / "cluster-config.yaml"),
    }


def prolog_folder(workspace: Workspace) -> Path:
    """Where the head node's bootstrap puts what Slurm runs before each job."""
    return workspace.node / "root" / "opt" / "slurm" / "etc" / "scripts" / "prolog.d"


def boot(
    *,
    node_type: str,
    action: BootstrapAction,
    cluster_config: str,
    address: LocalAwsAddress,
    workspace: Workspace,
    narrator: Narrator,
) -> None:
    """Boot one node: its OnNodeConfigured action, out of the deployed bucket.

    Args:
        node_type: HeadNode or ComputeFleet.
        cluster_config: text of the deployed config, which nodes have in a shared folder of ParallelCluster's.

    Raises:
        RehearsalError: the script is not there, or it failed; with what it said.
    """
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
        passed_over = [line for line in lines if _NOT_HERE in line]
        for line in lines:
            if line not in passed_over:
                narrator.say(line)
        if passed_over:
            narrator.say(f"{len(passed_over)} steps more are for ParallelCluster's nodes alone")
        if done.returncode:
            raise RehearsalError(f"The {node_type}'s bootstrap failed: `{' '.join(command)}`:\n{said}")
