"""Reads the changes of CloudFormation resources from `cdk diff`."""

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ops.usage import OpsError
from training_cluster.paths import ROOT
from training_cluster.stack_names import CLUSTER_STACK, GUARD_TYPE

_CDK = ROOT / "node_modules" / ".bin" / "cdk"
# "Stack NetworkStack", followed by its CloudFormation name if that differs.
_HEADING = re.compile(r"^Stack (?P<stack>[\w-]+)(?: \(.*\))?$")
# "[~] AWS::Lambda::Function Guard/Handler GuardHandler5CB1 may be replaced"
_LINE = re.compile(
    r"^\[(?P<sign>[+~-])\] (?P<type>\w+::[\w:]+) (?P<name>\S+)(?: \S+?)??"
    r"(?: (?P<impact>may be replaced|replace|destroy|orphan))?$"
)
_TAIL_LINES = 5
_GRACE_S = 5.0

Kind = Literal["added", "changed", "may be replaced", "replaced", "removed", "removed, and kept"]
_KINDS: dict[str, Kind] = {
    "+": "added",
    "~": "changed",
    "-": "removed",
    "may be replaced": "may be replaced",
    "replace": "replaced",
    "destroy": "removed",
    "orphan": "removed, and kept",
}


@dataclass(frozen=True, kw_only=True)
class ResourceChange:
    """Change of one resource."""

    stack: str
    kind: Kind
    type: str
    name: str
    """Path of the resource in the stack."""


def read_resource_changes(context: Sequence[str]) -> list[ResourceChange]:
    """Run `cdk diff` for the cluster's stack and its dependencies, which takes ten seconds or more.

    It compares templates and creates no change set, so it changes nothing.

    Args:
        context: FLAG=VALUE pairs.

    Raises:
        OpsError: the CDK CLI is not installed, or failed.
    """
    if not _CDK.exists():
        raise OpsError(f"The CDK CLI is not installed here: no {_CDK}.\n  type:   npm ci")
    flags = [part for pair in context for part in ("--context", pair)]
    path = f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ.get('PATH', '')}"  # noqa: PTH120
    with tempfile.TemporaryDirectory(prefix="trainctl-") as assembly:
        options = ("--method=template", "--no-color", "--no-notices", "--no-version-reporting", "--output")
        code, said = _run(
            [str(_CDK), "diff", CLUSTER_STACK, *options, assembly, *flags],
            environment=os.environ | {"PATH": path},
        )
    if code:
        tail = "\n".join(f"  {line}" for line in said.strip().splitlines()[-_TAIL_LINES:])
        raise OpsError(f"cdk diff failed:\n{tail}\n  type:   trainctl plan --no-diff ..., which skips it")
    return parse_diff(said)


def _run(command: list[str], *, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a command, and return its exit code and output; its process group ends with it, also on Ctrl-C."""
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate()
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(_GRACE_S)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said


def parse_diff(text: str) -> list[ResourceChange]:
    """Parse the resource lines of `cdk diff`."""
    found, stack = [], ""
    for line in text.splitlines():
        if heading := _HEADING.match(line):
            stack = heading["stack"]
        elif stack and (found_line := _LINE.match(line.rstrip())):
            kind = _KINDS[found_line["impact"] or found_line["sign"]]
            if (found_line["type"], kind) == (GUARD_TYPE, "changed"):
                continue  # It knows which flags a deploy gives. What it protects has lines of its own.
            found.append(
                ResourceChange(stack=stack, kind=kind, type=found_line["type"], name=found_line["name"])
            )
    return found
