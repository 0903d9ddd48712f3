"""Builds the command that opens a shell on the head node, by Session Manager or by ssh."""

import os
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ops.account.clusters import Cluster, describe_cluster
from ops.account.head_node import find_head_node
from ops.account.region_and_profile import chosen_user, with_account
from ops.account.session import ClientOf, local_endpoint
from ops.options import print_json
from ops.printable import printable
from ops.usage import OpsError
from training_cluster.cluster.session_command import cluster_user, start_session_command

_ATTRIBUTES = "parallelcluster:attributes"
_PLUGIN = "session-manager-plugin"
HOW_TO_INSTALL = {
    "ssh": "OpenSSH's client, openssh-client in Debian and Ubuntu",
    "aws": "AWS CLI v2: https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    _PLUGIN: "Session Manager's plugin: https://docs.aws.amazon.com/systems-manager/latest/userguide/"
    "session-manager-working-with-install-plugin.html",
}
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.@-]*")
Which = Callable[[str], str | None]


def found(command: list[str], *, which: Which = shutil.which) -> list[str]:
    """Return the command with its program's full path. Raises OpsError if a program is missing here."""
    needed = [command[0], *([_PLUGIN] if "start-session" in command else [])]
    if missing := [name for name in needed if not which(name)]:
        steps = "\n".join(f"  install: {HOW_TO_INSTALL[name]}" for name in missing)
        other = "trainctl connect" if command[0] == "ssh" else "trainctl connect --ssh, where port 22 is open"
        raise OpsError(f"Not on this machine: {', '.join(missing)}.\n{steps}\n  type:    {other}")
    return [which(command[0]) or command[0], *command[1:]]


def session_command(cluster_name: str, client: ClientOf, command: str = "") -> list[str]:
    """Build the command that opens a shell of the caller's user by Session Manager, or runs `command` there.

    Raises OpsError if there is no head node, or no shell on it, and botocore's errors.
    """
    cluster = _running_cluster(cluster_name, client)
    head_node = find_head_node(cluster_name, client)
    user = head_node.run("id", "-un", reads_only=True).strip().rpartition("\n")[2]
    # The session's shell is root's, and the answer contains what the user's profile printed.
    if not _USER.fullmatch(user) or head_node.user not in {None, user}:
        raise OpsError(
            f"The login shell of {head_node.user or 'your user'} did not return its name: "
            f"{printable(user)[:80]!r}.\n"
            "  type:   look at what the user's ~/.bash_profile and ~/.profile print or change"
        )
    return shlex.split(
        start_session_command(
            region=cluster.region, instance_id=cluster.require_head_node(), user=user, command=command
        )
    )


def start_session(cluster_name: str, client: ClientOf, command: str, *, as_json: bool) -> None:
    """Become a session of the caller's user in which `command` reads the keyboard, or print it as JSON.

    Raises OpsError if there is no head node, no shell on it or no program here, and botocore's errors.
    """
    argv = shlex.split(with_account(shlex.join(session_command(cluster_name, client, command))))
    if as_json:
        print_json({"command": argv})
        return
    argv = found(argv)
    os.execv(argv[0], argv)  # noqa: S606 - no shell is meant


def forward_command(cluster_name: str, client: ClientOf, *, port: int, local_port: int) -> list[str]:
    """Build the command that forwards a port of the head node's 127.0.0.1 to one of this machine.

    Raises OpsError if there is no head node, and botocore's errors.
    """
    cluster = _running_cluster(cluster_name, client, without="trainctl top --url ADDRESS, as it printed")
    return [
        *("aws", "ssm", "start-session", "--region", cluster.region, "--target", cluster.require_head_node()),
        *("--document-name", "AWS-StartPortForwardingSession"),
        *("--parameters", f"portNumber={port},localPortNumber={local_port}"),
    ]


def ssh_command(cluster_name: str, client: ClientOf, *, key: Path | None) -> list[str]:
    """Build the command that opens a shell by ssh.

    Raises OpsError if there is no head node, public address or key file, and botocore's errors.
    """
    cluster = _running_cluster(cluster_name, client)
    if key and not key.is_file():
        raise OpsError(
            f"There is no key {key}.\n  type:   the command of {cluster.stack_name}'s output PrivateKey"
        )
    instance = _head_node(cluster, client)
    if not (address := instance.get("PublicIpAddress")):
        raise OpsError(
            f"The head node {cluster.head_node_id} has no public address: {instance['State']['Name']}.\n"
            f"  type:   trainctl status --cluster {cluster_name}"
        )
    user = chosen_user() or _user(instance)
    return ["ssh", *(["-i", str(key)] if key else []), f"{user}@{address}"]


def _running_cluster(cluster_name: str, client: ClientOf, without: str | None = None) -> Cluster:
    """Describe a cluster with a head node.

    Args:
        without: command for a rehearsal, which has no head node to connect to.
    """
    without = (
        without or f"trainctl connect --cluster {cluster_name} -- squeue, or another of Slurm's commands"
    )
    cluster = describe_cluster(cluster_name, client)
    # The address of a rehearsed head node belongs to a machine of somebody else.
    if endpoint := local_endpoint(client):
        raise OpsError(
            f"{endpoint} is the local AWS of a rehearsal, whose head node has no shell.\n  type:   {without}"
        )
    cluster.require_head_node()
    return cluster


def _head_node(cluster: Cluster, client: ClientOf) -> dict[str, Any]:
    answer = client("ec2").describe_instances(InstanceIds=[cluster.head_node_id])
    instance: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
    return instance


def _user(instance: dict[str, Any]) -> str:
    tags = {each["Key"]: each["Value"] for each in instance.get("Tags", [])}
    os_ = tags.get(_ATTRIBUTES, "").partition(",")[0]
    if (user := cluster_user(os_)) is None:
        raise OpsError(f"The head node's tag {_ATTRIBUTES} names an unknown os: {os_ or 'it is missing'}.")
    return user
