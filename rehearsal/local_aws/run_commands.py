"""Systems Manager's Run Command on the head node: the local Slurm answers, to squeue and sinfo alone.

A head node here is a record without a shell. Where a local Slurm runs, its environment lies in the file
LocalAwsAddress.head_node_shell; without that file the head node cannot be reached, as one that boots.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from rehearsal.local_aws import hooks
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.moto_types import ec2

_ALLOWED = re.compile(r"PATH=\$PATH:/opt/slurm/bin (squeue|sinfo)( [^;&|`$<>\n]*)?")
_TIMEOUT_S = 20
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


def _execute(script: str, environment: dict[str, str]) -> Ran:
    if not _ALLOWED.fullmatch(script):
        return _REFUSED, "", f"a rehearsal's head node runs squeue and sinfo alone, not: {script}"
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        return 1, "", f"no answer in {_TIMEOUT_S} s"
    return done.returncode, done.stdout, done.stderr
