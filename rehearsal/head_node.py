"""Work of a cluster's head node on AWS, done on this machine: its scripts, its Slurm, its shell.

A rehearsal calls it step by step. In a rehearsal that is left running, the local AWS runs it as a program at
each event of the cluster: `python -m rehearsal.head_node FOLDER CLUSTER EVENT`.
"""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from rehearsal.bootstrap import CLUSTER_CONFIG, boot, job_variables, node_service, own_folders, prolog_folder
from rehearsal.deployed import BootstrapAction, DeployedCluster, read_deployed_cluster
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_slurm import LocalSlurm, RunningSlurm, stop_processes
from rehearsal.problems import RehearsalError
from rehearsal.workspace import Workspace

MAX_NODES = 8
"""Largest number of nodes that run at a time; more nodes show nothing new on one machine."""


def run_node_actions(
    cluster: DeployedCluster,
    head_node_action: BootstrapAction,
    *,
    address: LocalAwsAddress,
    workspace: Workspace,
    say: Callable[[str], None],
) -> None:
    """Run the head node's custom action, and then a compute node's, which share this machine's folders.

    Raises:
        RehearsalError: a script failed; with its output.
    """
    actions = {"HeadNode": head_node_action, "ComputeFleet": cluster.compute_node_action}
    for node_type, action in actions.items():
        boot(
            node_type=node_type,
            action=action,
            cluster_config=cluster.config_text,
            address=address,
            workspace=workspace,
            say=say,
        )


def new_slurm(cluster: DeployedCluster, workspace: Workspace) -> LocalSlurm:
    """Return a Slurm with the cluster's partitions, which is not started yet."""
    return LocalSlurm(
        root=workspace.slurm,
        partitions=cluster.partitions,
        marker=workspace.marker,
        max_node_processes=MAX_NODES,
        prolog=prolog_folder(workspace),
        private=own_folders(workspace),
        service=node_service(workspace),
        settings=cluster.slurm_settings,
    )


def open_shell(slurm: LocalSlurm, address: LocalAwsAddress, workspace: Workspace) -> None:
    """Let Run Command reach the head node, with the environment of this Slurm's clients."""
    shell = slurm.client_env() | job_variables(workspace, address)
    address.head_node_shell.write_text(json.dumps(shell))


def follow(event: str, cluster_name: str, *, address: LocalAwsAddress, workspace: Workspace) -> None:
    """Do what a head node does at an event of local_aws.head_node.events.

    Raises:
        RehearsalError: a script failed, or Slurm refused the change; after an update it then has the
            previous configuration again, as after the rollback of the stack.
    """
    if event == "delete":
        address.head_node_shell.unlink(missing_ok=True)
        stop_processes(dict([workspace.marker]) | {"SLURM_CONF": str(workspace.slurm / "slurm.conf")})
        return
    if event == "stop-fleet":
        running_slurm(address, workspace).stop_fleet()
        return
    cluster = read_deployed_cluster(address, cluster_name)
    if event == "create":
        run_node_actions(cluster, cluster.head_node_action, address=address, workspace=workspace, say=print)
        slurm = new_slurm(cluster, workspace)
        slurm.start()
        open_shell(slurm, address, workspace)
    elif event == "update":
        update(cluster, running_slurm(address, workspace), address=address, workspace=workspace)
    else:
        running_slurm(address, workspace).start_fleet(cluster.partitions)


def update(
    cluster: DeployedCluster, slurm: RunningSlurm, *, address: LocalAwsAddress, workspace: Workspace
) -> None:
    """Change Slurm's configuration, and then run OnNodeUpdated, in ParallelCluster's order.

    Its head node runs the cookbook's update recipe, and only if that succeeds `fetch_and_run -postupdate`
    (chefUpdate in pcluster/templates/cluster_stack.py 3.16.1). If either fails, the stack is rolled back: the
    recipe then runs with the previous config, but OnNodeUpdated does not, since custom_action_executor.py of
    the cookbook runs it only while the stack is UPDATE_IN_PROGRESS.
    """
    config = workspace.node / CLUSTER_CONFIG
    previous = config.read_text()
    try:
        with slurm.updated(cluster.partitions, cluster.slurm_settings):
            run_node_actions(
                cluster, cluster.head_node_update_action, address=address, workspace=workspace, say=print
            )
    except BaseException:
        config.write_text(previous)
        raise


def running_slurm(address: LocalAwsAddress, workspace: Workspace) -> RunningSlurm:
    """Return the Slurm that runs in the workspace."""
    return RunningSlurm(root=workspace.slurm, environment=json.loads(address.head_node_shell.read_text()))


def follow_deploys(address: LocalAwsAddress, workspace: Workspace) -> None:
    """Have the local AWS call this module at each event of a cluster from now on."""
    command = [sys.executable, "-m", __name__, str(workspace.root)]
    address.head_node_program.write_text(json.dumps(command))


def main(folder: str, cluster_name: str, event: str) -> int:
    """Handle an event in the environment of a client of the local AWS; return the exit code."""
    workspace = Workspace(root=Path(folder))
    address = LocalAwsAddress(
        port=urlsplit(os.environ["AWS_ENDPOINT_URL"]).port or 0,
        folder=workspace.aws,
        access_key=os.environ["AWS_ACCESS_KEY_ID"],
        region=os.environ["AWS_REGION"],
    )
    try:
        follow(event, cluster_name, address=address, workspace=workspace)
    except RehearsalError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
