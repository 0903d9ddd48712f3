"""A shell command on a cluster's head node, by Systems Manager: no SSH, no open port, no key."""

from __future__ import annotations

import shlex
import time
from dataclasses import dataclass
from typing import Any

from ops.clusters import describe_cluster
from ops.session import ClientOf, unless
from ops.usage import OpsError

# Systems Manager keeps that much of what a command printed (its GetCommandInvocation).
MAX_OUTPUT_BYTES = 24_000
# ParallelCluster writes there who owns the cluster: ubuntu, ec2-user. The login shell has Slurm on its PATH.
# Words go past sudo as they are; its own --login would expand a $ in them.
_AS_USER = (
    '. /etc/parallelcluster/cfnconfig && exec sudo --set-home --user "$cfn_cluster_user" -- '
    "bash --login -c 'cd && exec \"$@\"' trainctl "
)
_ENDED = frozenset({"Success", "Failed", "Cancelled", "TimedOut"})
_FIRST_POLL_S, _LAST_POLL_S, _TIMEOUT_S = 0.3, 2.0, 90.0


class CommandError(OpsError):
    """A command ended with another exit code than 0; its own words are in the message."""


def as_user(*argv: str) -> str:
    """The script that runs one command as the cluster's user; every word reaches it as it is."""
    return _AS_USER + shlex.join(argv)


@dataclass(frozen=True, kw_only=True)
class HeadNode:
    """The head node of a cluster that stands."""

    cluster_name: str
    instance_id: str
    ssm: Any

    def run(self, *argv: str) -> str:
        """Run a command as the cluster's user; what it printed, MAX_OUTPUT_BYTES of it at most.

        Raises:
            OpsError: the head node does not answer.
            CommandError: the command failed.
            botocore's errors.
        """
        sent = unless(
            lambda: self.ssm.send_command(
                InstanceIds=[self.instance_id],
                DocumentName="AWS-RunShellScript",
                Parameters={"commands": [as_user(*argv)]},
            ),
            "InvalidInstanceId",  # Systems Manager has not heard of it
        )
        if sent is None:
            raise OpsError(
                f"The head node {self.instance_id} of {self.cluster_name} does not answer Systems Manager: "
                "it boots, it is stopped, or it has no way out.\n"
                f"  type:   trainctl status --cluster {self.cluster_name}"
            )
        return self._wait(sent["Command"]["CommandId"], argv)

    def _wait(self, command_id: str, argv: tuple[str, ...]) -> str:
        poll_s, deadline = _FIRST_POLL_S, time.monotonic() + _TIMEOUT_S
        while True:
            time.sleep(poll_s)
            poll_s = min(poll_s * 1.5, _LAST_POLL_S)
            answer = unless(
                lambda: self.ssm.get_command_invocation(CommandId=command_id, InstanceId=self.instance_id),
                "InvocationDoesNotExist",  # for a moment after it was sent
            )
            if answer and answer["Status"] in _ENDED:
                break
            if time.monotonic() > deadline:
                raise OpsError(
                    f"{shlex.join(argv)}: no end after {_TIMEOUT_S:.0f} s on {self.instance_id}.\n"
                    f"  type:   aws ssm get-command-invocation --command-id {command_id} "
                    f"--instance-id {self.instance_id}"
                )
        if answer["Status"] != "Success":
            said = answer["StandardErrorContent"].strip() or answer["StandardOutputContent"].strip()
            raise CommandError(f"{argv[0]}: {said or answer['Status']}")
        return str(answer["StandardOutputContent"])


def find_head_node(cluster_name: str, client: ClientOf) -> HeadNode:
    """The head node of a deployed cluster. Raises OpsError where there is none, and botocore's errors."""
    cluster = describe_cluster(cluster_name, client)
    if cluster.head_node_id is None:
        raise OpsError(
            f"The cluster {cluster_name} has no head node yet: {cluster.stack_name} is {cluster.status}.\n"
            f"  type:   trainctl status --cluster {cluster_name} --watch"
        )
    return HeadNode(cluster_name=cluster_name, instance_id=cluster.head_node_id, ssm=client("ssm"))
