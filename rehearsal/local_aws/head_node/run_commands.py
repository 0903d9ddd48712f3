"""Systems Manager's Run Command on the head node, with the local Slurm and the shared folder.

A head node here is a record without a shell. The commands of the provider and trainctl run on this machine,
as the person who rehearses, with the rehearsal's folders for /fsx and /efs. Other commands are refused, and
so are scripts other than those of ops/account/head_node_scripts and metrics/slurm.py. The environment of the
commands is in the file LocalAwsAddress.head_node_shell while a local Slurm runs. Without that file the head
node cannot be reached, like one that is still booting.
"""

import dataclasses
import datetime
import itertools
import json
import os
import pwd
import re
import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.emulators import hooks
from rehearsal.local_aws.emulators.moto_types import ec2
from rehearsal.local_aws.head_node.agent import Agent, Outcome, Task
from training_cluster.catalog.families import load_base
from training_cluster.cluster.session_command import RUN_AS_USER, split_whom
from training_cluster.paths import ASSETS, ROOT

# The provider's commands run as root, trainctl's as the cluster's user (RUN_AS_USER).
_ROOT = "PATH=$PATH:/opt/slurm/bin "
_ASKS = frozenset({"squeue", "sinfo"})
_PROGRAMS = _ASKS | frozenset(
    {"sbatch", "srun", "scancel", "scontrol", "sacct", "df", "ls", "cat", "dd", "stat", "id"}
)
_MODULES = ("python3", "-B", "-m", "trainkit.run.report")
_REGISTRY = ("bash", f"{load_base().shared_dir}/training/registry.sh")
SCRIPTS = ROOT / "ops" / "account" / "head_node_scripts"
SLURM = ASSETS / "bootstrap" / "metrics" / "slurm.py"
_EFS, _ETC = "/efs", "/etc/training-cluster"
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
# Default limits of AWS-RunShellScript, and of SendCommand.
_EXECUTION_S, _DELIVERY_S = 3600.0, 3600.0
# Characters of a command's errors that GetCommandInvocation returns; the agent has cut both.
_STDERR = 8_000
_REFUSED = 126

_cancelled: dict[str, threading.Event] = {}
"""Cancellation of each command, by its id."""
_found: set[str] = set()
"""Ids of the commands whose invocation a client has already requested."""


def install(address: LocalAwsAddress) -> None:
    """Let commands reach head nodes while a local Slurm runs."""
    agent = Agent()
    commands = hooks.find("COMMANDS")

    def managed(_original: Callable[[], set[str]]) -> Callable[[], set[str]]:
        return lambda: (
            {str(node.id) for node in running_nodes("HeadNode")}
            if address.head_node_shell.exists()
            else set()
        )

    def deliver(_original: Callable[..., None]) -> Callable[..., None]:
        def finish(command_id: str, instance_id: str, argv: Sequence[str]) -> None:
            record = commands[command_id]
            _finish(record, record["Invocations"][instance_id], argv[-1], address, agent)

        return finish

    hooks.replace("MANAGED_INSTANCES", managed)
    hooks.replace("FINISH_INVOCATION", deliver)


def _finish(
    record: dict[str, Any], invocation: dict[str, Any], script: str, address: LocalAwsAddress, agent: Agent
) -> None:
    """Run a command and store its result. The status is stored last, since clients poll it."""

    def take() -> None:
        invocation.update(StatusDetails="In Progress", Status="InProgress")

    def start() -> None:
        invocation["ExecutionStartDateTime"] = _now()

    outcome = run(
        script,
        json.loads(address.head_node_shell.read_text()),
        agent=agent,
        delivery_s=float(record["TimeoutSeconds"]),
        execution_s=float((record["Parameters"].get("executionTimeout") or [_EXECUTION_S])[0]),
        cancelled=_cancelled.setdefault(record["CommandId"], threading.Event()),
        take=take,
        start=start,
    )
    invocation |= {
        "ResponseCode": outcome.code,
        "StandardOutputContent": outcome.stdout,
        "StandardErrorContent": outcome.stderr[:_STDERR],
        "ExecutionEndDateTime": _now(),
        "StatusDetails": outcome.details,
    }
    invocation["Status"] = record["Status"] = outcome.status


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat()


def answer(headers: Mapping[str, str], body: bytes) -> tuple[int, str] | None:
    """Answer what ministack's Run Command does not: a cancellation, and the first request for an invocation.

    Returns:
        Status and body; None for a request that ministack answers.
    """
    action = headers.get("x-amz-target", "").rpartition(".")[2]
    if action not in {"CancelCommand", "GetCommandInvocation"}:
        return None
    command_id = json.loads(body).get("CommandId")
    if action == "CancelCommand":
        if command_id not in hooks.find("COMMANDS"):
            return 400, json.dumps({"__type": "InvalidCommandId"})
        _cancelled.setdefault(command_id, threading.Event()).set()
        return 200, "{}"
    if command_id in _found:
        return None
    _found.add(command_id)  # Systems Manager may find none for a moment
    return 400, json.dumps({"__type": "InvocationDoesNotExist"})


def running_nodes(node_type: str, cluster_name: str | None = None) -> list[Any]:
    """Return moto's running instances of a type of node, of one cluster or of all."""
    wanted = {"parallelcluster:node-type": node_type}
    if cluster_name:
        wanted["parallelcluster:cluster-name"] = cluster_name
    return [
        instance
        for instance in ec2().all_instances()
        if instance.state == "running"
        and wanted.items() <= {each["key"]: each["value"] for each in instance.get_tags()}.items()
    ]


def run(
    script: str,
    environment: Mapping[str, str],
    *,
    agent: Agent,
    delivery_s: float = _DELIVERY_S,
    execution_s: float = _EXECUTION_S,
    cancelled: threading.Event | None = None,
    take: Callable[[], None] = lambda: None,
    start: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run a command for a head node, if it is an allowed one."""
    user, script = split_whom(script)
    if user and user != pwd.getpwuid(os.getuid()).pw_name:
        said = f"trainctl: {user} is no user of this cluster"
        return Outcome(status="Failed", details="Failed", code=1, stderr=said)
    command = _allowed(script)
    if command is None:
        said = f"a rehearsal's head node does not run this command: {script}"
        return Outcome(status="Failed", details="Failed", code=_REFUSED, stderr=said)
    folders = {
        load_base().shared_dir: environment.get("TRAINING_SHARED", ""),
        _EFS: environment.get("TRAINING_EFS", ""),
        _ETC: environment.get("TRAINING_ETC", ""),
    }
    # The user's own password file remains unchanged.
    home = {"HOME": f"{folders[_EFS]}/home"} if tuple(command[:2]) == _REGISTRY else {}
    assignments, argv = _split([_on_this_machine(word, folders) for word in command])
    outcome = agent.run(
        Task(
            argv=argv,
            environment={**environment, **home, **dict(each.split("=", 1) for each in assignments)},
            folder=environment.get("HOME"),
            delivery_s=delivery_s,
            execution_s=execution_s,
            cancelled=cancelled or threading.Event(),
            take=take,
            start=start,
        )
    )
    return dataclasses.replace(
        outcome,
        stdout=_on_the_cluster(outcome.stdout, folders),
        stderr=_on_the_cluster(outcome.stderr, folders),
    )


def _allowed(script: str) -> list[str] | None:
    """Return the command in an allowed script; None for any other script."""
    prefix, programs = next(
        (
            (each, names)
            for each, names in ((_ROOT, _ASKS), (RUN_AS_USER, _PROGRAMS))
            if script.startswith(each)
        ),
        (None, frozenset[str]()),
    )
    if prefix is None:
        return None
    try:
        command = shlex.split(script.removeprefix(prefix))
    except ValueError:
        return None
    _, argv = _split(command)
    known = bool(argv) and (argv[0] in programs or (prefix == RUN_AS_USER and _is_ours(argv)))
    return command if known else None


def _is_ours(argv: Sequence[str]) -> bool:
    """Return True for a module, or the exact text of a script, that trainctl runs on head nodes."""
    if tuple(argv[:2]) == ("bash", "-c"):
        return argv[2:3] in [[path.read_text()] for path in SCRIPTS.glob("*.sh")]
    programs = (_MODULES, ("python3", "-I", "-c", SLURM.read_text()))
    return tuple(argv[:4]) in programs or tuple(argv[:2]) == _REGISTRY


def _split(command: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split `env NAME=value ... PROGRAM ...` into assignments, and the program with its arguments."""
    if command[:1] != ["env"]:
        return [], list(command)
    assignments = list(itertools.takewhile(_ASSIGNMENT.fullmatch, command[1:]))
    return assignments, list(command[len(assignments) + 1 :])


def _on_this_machine(word: str, folders: Mapping[str, str]) -> str:
    for mount, folder in folders.items():
        word = _moved(word, mount, folder) if folder else word
    return word


def _on_the_cluster(text: str, folders: Mapping[str, str]) -> str:
    for mount, folder in folders.items():
        text = _moved(text, folder, mount) if folder else text
    return text


def _moved(text: str, here: str, there: str) -> str:
    """Replace paths below one folder with paths below another."""
    return re.sub(rf"(?<![\w/.-]){re.escape(here)}(?![\w.-])", lambda _: there, text)
