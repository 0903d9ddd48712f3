"""Runs commands on a cluster's head node by Systems Manager: without SSH, open ports or keys."""

import base64
import contextlib
import json
import re
import shlex
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, ReadTimeoutError

from ops.account.clusters import describe_cluster
from ops.account.region_and_profile import chosen_user
from ops.account.session import ClientOf, unless
from ops.printable import printable
from ops.usage import OpsError
from training_cluster.cluster.session_command import RUN_AS_USER, whom
from training_cluster.paths import ASSETS
from training_cluster.users.model import caller_keys

# Systems Manager keeps this much of a command's output (GetCommandInvocation).
MAX_OUTPUT_BYTES = 24_000
_LARGEST = 50_000_000
"""Bytes of an unpacked answer."""
_SCRIPTS = Path(__file__).with_name("head_node_scripts")
SLURM = ASSETS / "bootstrap" / "metrics" / "slurm.py"
Rows = list[dict[str, Any]]
_ENDED = frozenset({"Success", "Failed", "Cancelled", "TimedOut"})
_FIRST_POLL_S, _LAST_POLL_S = 0.3, 2.0
# The minimum of SendCommand: a command that the agent has not started by then is never run.
_DELIVERY_S = 30
LIMIT_S = 90
"""Time limit of a command: the agent has five workers, and a command that hangs occupies one of them."""
# Time that Systems Manager needs to report the end of a command.
_GRACE_S = 10
# Beginning of what RUN_AS_USER says about the caller.
_REFUSED = "trainctl: "
# The line that the agent adds to the output (amazon-ssm-agent, agent/plugins/runscript/runscript.go).
_AGENT_SAID = re.compile(r"\n?failed to run commands: exit status \d+\s*\Z")
# StatusDetails of a command that no agent has started; AWS also writes it with blanks between the words.
_NOT_DELIVERED = frozenset({"deliverytimedout", "undeliverable"})
_SERVER_ERROR = 500
# Pauses between the attempts of a command that only reads.
_PAUSES_S = (0.5, 2.0)


class CommandError(OpsError):
    """A command failed; its output is in the message."""


class NotStartedError(OpsError):
    """The head node did not start a command in time, and will never start it."""


class NoEndError(OpsError):
    """The end of a command was not reported: it may have done its work, or a part of it."""


def unpacked(line: str) -> bytes:
    """Return what a script of the head node packed as base64 of gzip. Raises ValueError if it is not that."""
    try:
        # The size is limited, because the line comes from another machine.
        packed = base64.b64decode(line.strip(), validate=True)
        return zlib.decompressobj(wbits=31).decompress(packed, _LARGEST)
    except zlib.error as error:
        raise ValueError(str(error)) from None


def as_user(*argv: str, user: str | None = None, callers: tuple[str, ...] = ()) -> str:
    """Return the script that runs a command as a user of the cluster, with every word unchanged."""
    return whom(user=user, callers=callers) + RUN_AS_USER + shlex.join(argv)


@dataclass(frozen=True, kw_only=True)
class HeadNode:
    """The head node of a deployed cluster."""

    cluster_name: str
    instance_id: str
    ssm: Any
    user: str | None = None
    """User as whom commands run; None for the caller's own."""
    callers: tuple[str, ...] = ()
    """Keys of the caller's IAM identity, by which a cluster with several users knows the caller's own."""
    client: ClientOf | None = None
    """Clients of the cluster's account."""

    def __post_init__(self) -> None:
        """Keep boto3 from repeating SendCommand, which takes no token and would run a command twice."""
        self.ssm.meta.events.register_first(
            "needs-retry.ssm.SendCommand", _refuse_to_repeat, unique_id="trainctl-send-once"
        )

    def run(self, *argv: str, limit_s: int = LIMIT_S, reads_only: bool = False) -> str:
        """Run a command as the caller's user, and return its output, MAX_OUTPUT_BYTES at most.

        Args:
            argv: the program and its arguments; no shell expands them.
            limit_s: time limit of the command, 5 or more.
            reads_only: the command changes nothing, so it is sent again if the answer is lost.

        Raises:
            NotStartedError: the head node does not answer; the command was not run.
            NoEndError: the head node stopped answering.
            CommandError: the command failed.
            botocore's errors.
        """
        return self._run(argv, shlex.join(argv), limit_s, reads_only)

    def run_script(self, name: str, *arguments: str, limit_s: int = LIMIT_S, reads_only: bool = False) -> str:
        """Run one of head_node_scripts. Arguments, output and errors are as in `run`."""
        text = (_SCRIPTS / name).read_text(encoding="utf-8")
        argv, shown = ("bash", "-c", text, name, *arguments), shlex.join((name, *arguments))
        return self._run(argv, shown, limit_s, reads_only)

    def can_read(self, path: str) -> bool:
        """Return True for a file or folder that the user can read. Errors are as in `run`."""
        try:
            self.run("ls", "-d", path, reads_only=True)
        except CommandError:
            return False
        return True

    def ask_slurm(self, program: str, *arguments: str, limit_s: int = LIMIT_S) -> tuple[Rows, bool, str]:
        """Ask sinfo, squeue or sacct for nodes or jobs, through the program of the head node's metrics.

        Args:
            arguments: options, then, if a part of a file is requested, `--` and its path, offset and size.

        Returns:
            The records, True if some of them are missing, and the output about the file. Errors are those of
            `run`.
        """
        argv = ("python3", "-I", "-c", SLURM.read_text(encoding="utf-8"), program, *arguments)
        said = self._run(argv, shlex.join((program, *arguments)), limit_s, reads_only=True)
        line, _, rest = said.partition("\n")
        try:
            found = json.loads(unpacked(line))
        except ValueError:
            raise OpsError(
                f"{program}: unreadable answer of the head node: {printable(line[:200])}"
            ) from None
        rows = [
            {name: printable(value) if isinstance(value, str) else value for name, value in pairs}
            for pairs in (zip(found["fields"], row, strict=True) for row in found["rows"])
        ]
        return rows, found["is_cut"], rest

    def _run(self, argv: tuple[str, ...], shown: str, limit_s: int, reads_only: bool) -> str:
        pauses = iter(_PAUSES_S if reads_only else ())
        while True:
            try:
                sent = self._send(argv, limit_s)
                break
            except _AnswerLostError as error:
                if (pause_s := next(pauses, None)) is None:
                    raise NoEndError(
                        f"Systems Manager's answer was lost ({error}): "
                        f"it may have run on {self.instance_id}: {shown}"
                    ) from None
            time.sleep(pause_s)
        if sent is None:
            raise NotStartedError(
                f"The head node {self.instance_id} of {self.cluster_name} does not answer Systems Manager: "
                "it is booting or stopped, or it cannot reach AWS.\n"
                f"  type:   trainctl status --cluster {self.cluster_name}"
            )
        command_id = sent["Command"]["CommandId"]
        try:
            answer = self._wait(command_id, deadline=time.monotonic() + _DELIVERY_S + limit_s + _GRACE_S)
        except KeyboardInterrupt:
            self._cancel(command_id)
            raise
        if answer is not None and _is_undelivered(answer):
            raise NotStartedError(
                f"The head node {self.instance_id} of {self.cluster_name} did not start a command within "
                f"{_DELIVERY_S} s, so it was not run: {shown}\n"
                f"  type:   trainctl status --cluster {self.cluster_name}, then the same command again"
            )
        if answer is None or answer["Status"] in ("TimedOut", "Cancelled"):
            # An agent whose workers are all busy queues the command, and would start it later.
            self._cancel(command_id)
            raise NoEndError(
                f"{shown} did not end within {limit_s} s on {self.instance_id}, and is cancelled.\n"
                f"  type:   aws ssm get-command-invocation --command-id {command_id} "
                f"--instance-id {self.instance_id}"
            )
        if answer["Status"] == "Failed":
            said = _words(answer)
            if said.startswith(_REFUSED):
                raise OpsError(
                    f"{said.removeprefix(_REFUSED)}.\n"
                    f"  type:   trainctl --as NAME ..., or have it added to `iam` in the file of users"
                )
            raise CommandError(f"{shlex.split(shown)[0]}: {said}")
        return str(answer["StandardOutputContent"])

    def _send(self, argv: tuple[str, ...], limit_s: int) -> dict[str, Any] | None:
        """Send a command to Systems Manager; return None if it does not know the head node."""
        sent: dict[str, Any] | None = unless(
            lambda: self.ssm.send_command(
                InstanceIds=[self.instance_id],
                DocumentName="AWS-RunShellScript",
                TimeoutSeconds=_DELIVERY_S,
                Parameters={
                    "commands": [as_user(*argv, user=self.user, callers=self.callers)],
                    "executionTimeout": [str(limit_s)],
                },
            ),
            "InvalidInstanceId",
        )
        return sent

    def _wait(self, command_id: str, *, deadline: float) -> dict[str, Any] | None:
        """Return the result of a command, None if it did not end in time."""
        poll_s = _FIRST_POLL_S
        while time.monotonic() < deadline:
            time.sleep(poll_s)
            poll_s = min(poll_s * 1.5, _LAST_POLL_S)
            answer: dict[str, Any] | None = unless(
                lambda: self.ssm.get_command_invocation(CommandId=command_id, InstanceId=self.instance_id),
                "InvocationDoesNotExist",  # for a moment after it was sent
            )
            if answer and answer["Status"] in _ENDED:
                return answer
        return None

    def _cancel(self, command_id: str) -> None:
        # If this fails, the agent itself ends the command at its time limit.
        with contextlib.suppress(BotoCoreError, ClientError):
            self.ssm.cancel_command(CommandId=command_id, InstanceIds=[self.instance_id])


class _AnswerLostError(Exception):
    """A request was sent, and its answer was lost."""


def _refuse_to_repeat(response: Any = None, caught_exception: Exception | None = None, **_: Any) -> None:
    """Raise the error for which boto3 would repeat the request, if the first one may have been received."""
    if isinstance(caught_exception, ReadTimeoutError | ConnectionClosedError):
        raise _AnswerLostError(caught_exception) from caught_exception
    if response is not None and response[0].status_code >= _SERVER_ERROR:
        raise _AnswerLostError(ClientError(response[1], "SendCommand"))


def _is_undelivered(answer: dict[str, Any]) -> bool:
    """Return True if no agent received a command: the only result after which it can never start."""
    return str(answer.get("StatusDetails")).replace(" ", "").lower() in _NOT_DELIVERED


def _words(answer: dict[str, Any]) -> str:
    """Return the output of a failed command without the line that the agent adds."""
    errors = _AGENT_SAID.sub("", answer["StandardErrorContent"])
    lines = [*errors.strip().split("\n"), *answer["StandardOutputContent"].strip().split("\n")]
    return "\n".join(printable(line) for line in lines if line) or f"exit code {answer['ResponseCode']}"


def find_head_node(cluster_name: str, client: ClientOf) -> HeadNode:
    """Find the head node of a deployed cluster. Raises OpsError without one, and botocore's errors."""
    cluster = describe_cluster(cluster_name, client)
    return head_node_for_caller(cluster.name, cluster.require_head_node(), client)


def head_node_for_caller(cluster_name: str, instance_id: str, client: ClientOf) -> HeadNode:
    """Return a head node whose commands run as the user of --as, or as the caller's own.

    A caller whose identity AWS does not tell is nobody in a cluster with several users.
    """
    callers: tuple[str, ...] = ()
    with contextlib.suppress(BotoCoreError, ClientError):
        callers = caller_keys(client("sts").get_caller_identity()["Arn"])
    return HeadNode(
        cluster_name=cluster_name,
        instance_id=instance_id,
        ssm=client("ssm"),
        user=chosen_user(),
        callers=callers,
        client=client,
    )
