"""A shell on the head node: the command that opens one, from what is on this machine and in the account."""

from __future__ import annotations

import ipaddress
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from ops.clusters import Cluster, describe_cluster
from ops.session import ClientOf
from ops.usage import OpsError

# Who owns a ParallelCluster node, by the first word of its os (pcluster.constants.OS_MAPPING).
_USERS = {"alinux": "ec2-user", "rhel": "ec2-user", "ubuntu": "ubuntu", "rocky": "rocky"}
_ATTRIBUTES = "parallelcluster:attributes"
_PLUGIN = "session-manager-plugin"
_HOW = {
    "ssh": "OpenSSH's client, openssh-client in Debian and Ubuntu",
    "aws": "AWS's CLI: make setup, or https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    _PLUGIN: "Session Manager's plugin: https://docs.aws.amazon.com/systems-manager/latest/userguide/"
    "session-manager-working-with-install-plugin.html",
}
Which = Callable[[str], str | None]


def beside_python(program: str) -> str | None:
    """A program of this Python environment, else one on the PATH; None where there is none."""
    own = Path(sys.executable).with_name(program)
    return str(own) if own.is_file() else shutil.which(program)


def found(command: list[str], *, which: Which = beside_python) -> list[str]:
    """The command, with its program's whole path. Raises OpsError where a program is missing here."""
    needed = [command[0], *([_PLUGIN] if "start-session" in command else [])]
    if missing := [name for name in needed if not which(name)]:
        steps = "\n".join(f"  install: {_HOW[name]}" for name in missing)
        other = "trainctl connect" if command[0] == "ssh" else "trainctl connect --ssh, where port 22 is open"
        raise OpsError(f"Not on this machine: {', '.join(missing)}.\n{steps}\n  type:    {other}")
    return [which(command[0]) or command[0], *command[1:]]


def session_command(cluster_name: str, client: ClientOf) -> list[str]:
    """The command that opens a shell by Session Manager.

    Raises OpsError where there is no head node, or no shell on it, and botocore's errors.
    """
    cluster = _standing(cluster_name, client)
    target = str(cluster.head_node_id)
    return ["aws", "ssm", "start-session", "--region", cluster.region, "--target", target]


def ssh_command(cluster_name: str, client: ClientOf, *, key: Path | None) -> list[str]:
    """The command that opens a shell by ssh.

    Raises OpsError where there is no head node, no address of it, or no key file, and botocore's errors.
    """
    cluster = _standing(cluster_name, client)
    if key and not key.is_file():
        raise OpsError(
            f"There is no key {key}.\n  type:   the command of {cluster.stack_name}'s output PrivateKey"
        )
    answer = client("ec2").describe_instances(InstanceIds=[cluster.head_node_id])
    instance = answer["Reservations"][0]["Instances"][0]
    if not (address := instance.get("PublicIpAddress")):
        raise OpsError(
            f"The head node {cluster.head_node_id} is {instance['State']['Name']}, without public address.\n"
            f"  type:   trainctl status --cluster {cluster_name}"
        )
    tags = {each["Key"]: each["Value"] for each in instance.get("Tags", [])}
    return ["ssh", *(["-i", str(key)] if key else []), f"{_user(tags)}@{address}"]


def _standing(cluster_name: str, client: ClientOf) -> Cluster:
    cluster = describe_cluster(cluster_name, client)
    # Its public address would be a stranger's machine.
    endpoint = urlsplit(client("ssm").meta.endpoint_url).hostname or ""
    if _is_loopback(endpoint):
        raise OpsError(
            f"{endpoint} is no AWS: the head node of a rehearsal is a record, without a shell of its own.\n"
            "  type:   trainctl connect -- squeue, or another of Slurm's commands"
        )
    if cluster.head_node_id is None:
        raise OpsError(
            f"The cluster {cluster_name} has no head node yet: {cluster.stack_name} is {cluster.status}.\n"
            f"  type:   trainctl status --cluster {cluster_name} --watch"
        )
    return cluster


def _user(tags: dict[str, str]) -> str:
    os_ = tags.get(_ATTRIBUTES, "").partition(",")[0]
    user = next((user for begins, user in _USERS.items() if os_.startswith(begins)), None)
    if user is None:
        raise OpsError(f"The head node's tag {_ATTRIBUTES} names no known os: {os_ or 'it is missing'}.")
    return user


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
