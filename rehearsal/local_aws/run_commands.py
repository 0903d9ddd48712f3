"""Systems Manager's Run Command on the head node: the local Slurm answers, and the shared folder.

A head node here is a record without a shell: of the commands that the provider and trainctl send, what they
start runs on this machine, without a shell and as whoever rehearses, with the rehearsal's folders for /fsx
and /efs. All else is refused. What it takes lies in the file LocalAwsAddress.head_node_shell while a local
Slurm runs; without that file the head node cannot be reached, as one that boots.
"""

from __future__ import annotations

import itertools
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rehearsal.local_aws import hooks
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.moto_types import ec2
from training_cluster.families import load_base

# The provider asks as root, trainctl as the cluster's user (ops/head_node.py).
_ROOT = "PATH=$PATH:/opt/slurm/bin "
_USER = (
    '. /etc/parallelcluster/cfnconfig && exec sudo --set-home --user "$cfn_cluster_user" -- '
    "bash --login -c 'cd && exec \"$@\"' trainctl "
)
_ASKS = frozenset({"squeue", "sinfo"})
_PROGRAMS = _ASKS | frozenset({"sbatch", "scancel", "scontrol", "sacct", "df", "ls", "cat", "dd", "stat"})
_MODULES = ("python3", "-B", "-m", "training_common.report")
_EFS = "/efs"
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.DOTALL)
_TIMEOUT_S = 60
_REFUSED = 126
_HEAD_NODE = ("parallelcluster:node-type", "HeadNode")

Ran = tuple[int, str, str]


def install(address: LocalAwsAddress) -> None:
    """Let commands reach head nodes while a local Slurm runs."""

    def managed(_original: Callable[[], set[str]]) -> Callable[[], set[str]]:
        return lambda: _head_nodes() if address.head_node_shell.exists() else set()

    def run(_original: Callable[..., Ran]) -> Callable[..., Ran]:
        def execute(instance_id: str, argv: Sequence[str]) -> Ran:  # noqa: ARG001
            return _execute(argv[-1], json.loads(address.head_node_shell.read_text()))

        return execute

    hooks.replace(hooks.MANAGED_INSTANCES, managed)
    hooks.replace(hooks.RUN_IN_INSTANCE, run)


def _head_nodes() -> set[str]:
    return {
        str(instance.id)
        for instance in ec2().all_instances()
        if instance.state == "running" and _HEAD_NODE in {(t["key"], t["value"]) for t in _tags(instance)}
    }


def _tags(instance: Any) -> list[dict[str, str]]:
    return list(instance.get_tags())


def _execute(script: str, environment: Mapping[str, str]) -> Ran:
    command = _allowed(script)
    if command is None:
        return _REFUSED, "", f"a rehearsal's head node takes no such command: {script}"
    folders = {
        load_base().shared_dir: environment.get("TRAINING_SHARED", ""),
        _EFS: environment.get("TRAINING_EFS", ""),
    }
    assignments, argv = _split([_on_this_machine(word, folders) for word in command])
    try:
        done = subprocess.run(
            argv,
            env={**environment, **dict(each.split("=", 1) for each in assignments)},
            cwd=environment.get("HOME"),
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return 1, "", f"no answer in {_TIMEOUT_S} s"
    except OSError as error:
        return 127, "", str(error)
    return done.returncode, _on_the_cluster(done.stdout, folders), _on_the_cluster(done.stderr, folders)


def _allowed(script: str) -> list[str] | None:
    """The command of a script that is one; None for another."""
    prefix, programs = next(
        ((each, names) for each, names in ((_ROOT, _ASKS), (_USER, _PROGRAMS)) if script.startswith(each)),
        (None, frozenset[str]()),
    )
    if prefix is None:
        return None
    try:
        command = shlex.split(script.removeprefix(prefix))
    except ValueError:
        return None
    _, argv = _split(command)
    known = bool(argv) and (argv[0] in programs or (prefix == _USER and tuple(argv[:4]) == _MODULES))
    return command if known else None


def _split(command: Sequence[str]) -> tuple[list[str], list[str]]:
    """The assignments of `env NAME=value ... PROGRAM ...`, and the program with its arguments."""
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
    """With paths below one folder as paths below another."""
    return re.sub(rf"(?<![\w/.-]){re.escape(here)}(?![\w.-])", lambda _: there, text)
