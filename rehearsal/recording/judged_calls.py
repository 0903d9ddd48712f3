"""The provider's judged calls in a form that does not differ between runs, for tests without a local AWS."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rehearsal.local_aws.address import REGION
from rehearsal.local_aws.rights.need import Need, arn
from training_cluster.permissions.table import NO_ACTION
from training_cluster.stack_names import CLUSTER_STACK, DEFAULT_CLUSTER, FORMER_DEFAULT, progress_parameter

PATH = Path(__file__).with_name("judged-calls.jsonl")
"""The recording: calls of deploys, `make validate` and `make faults`."""
BUCKET, PROGRESS_PARAMETER, PROGRESS_GROUP = "scripts", "/progress", "progress"
"""Fixed names in a recording, which replace a run's generated names."""
SECRET = arn("secretsmanager", "secret:accounting")
OWN_STACK = arn("cloudformation", f"stack/{CLUSTER_STACK}/00000000-0000-0000-0000-000000000000")

_NEVER_DENIED = "sts:GetCallerIdentity"
# The role of the provider of one cluster, whose name is in the stack's name unless it is the default.
_ROLE = re.compile(rf"(?P<stack>{CLUSTER_STACK}(-(?P<cluster>.+))?)-ClusterProviderRole[0-9A-F-]+")

# Parts that differ between runs, and their replacements in a recording.
_RANDOM = (
    (re.compile(r"\b[a-z]{2}-[a-z]+-\d\b"), REGION),
    (re.compile(r"\b(i|fs|lt|subnet|vpc|sg|eni)-[0-9a-f]{8,17}\b"), r"\1-0123456789abcdef0"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "00000000-0000-0000-0000-000000000000"),
    (re.compile(r"-(?=\d*[A-Z])[A-Z0-9]{12,13}(?=$|[/:\"])"), "-A1B2C3D4E5F6"),
    (re.compile(r"-20\d{10}\b"), "-202601010000"),
    (re.compile(r"\bparallelcluster-[0-9a-f]{16}-v1"), "parallelcluster-0123456789abcdef-v1"),
    (re.compile(r"/clusters/training-[a-z0-9]{16}\b"), "/clusters/training-0123456789abcdef"),
    (re.compile(r"trainingcluster-storage-storagebucket[0-9a-f]+-[0-9a-f]+"), BUCKET),
    (re.compile(r"\bsecret:TrainingCluster-Accounting-[\w-]+"), "secret:accounting"),
    (re.compile(r"\b20\d\d-\d\d-\d\dT\d\d-\d\d-\d\d\.\d+Z"), "2026-01-01T00-00-00.000Z"),
    (re.compile(rf"/aws/cloudformation/{CLUSTER_STACK}/ClusterProgressLog[0-9A-F]+"), PROGRESS_GROUP),
)


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """One right that the provider needed, and the call that needed it."""

    need: Need
    by: str
    """The request, or the resource type and operation of CloudFormation."""


def add(recording: str, lines: Iterable[str]) -> str:
    """Add to a recording one line for each new action, caller and kind of resource.

    Args:
        lines: lines of `judged_calls` of a local AWS; lines of other roles than a provider's are ignored.
    """
    kept = recording.splitlines()
    known = {_key(line) for line in kept}
    for line in sorted(filter(None, map(_normalised, lines))):
        if _key(line) not in known:
            known.add(_key(line))
            kept.append(line)
    return "".join(f"{line}\n" for line in sorted(kept))


def parse(recording: str) -> list[RecordedCall]:
    """Read the calls of a recording that need a right."""
    return [
        RecordedCall(
            need=Need(action=call["action"], resource=call["resource"], context=call["context"]),
            by=call["by"],
        )
        for call in map(json.loads, recording.splitlines())
        if call["action"] != NO_ACTION
    ]


def types_of(recording: str) -> set[str]:
    """Return the resource types of the clusters' stacks."""
    callers = [str(json.loads(line)["by"]) for line in recording.splitlines()]
    return {name for name, _, _ in (each.partition(" ") for each in callers) if "::" in name}


def _key(line: str) -> tuple[str, ...]:
    call = json.loads(line)
    kind = re.split(r"[/*]", call["resource"])[0]
    return call["action"], call["by"], kind, ",".join(sorted(call["context"]))


def _normalised(line: str) -> str:
    """Return a judged call without its role and with fixed names; empty if it is not the provider's."""
    call = json.loads(line)
    if call["action"] == _NEVER_DENIED or not (role := _ROLE.fullmatch(call.pop("role"))):
        return ""
    line = json.dumps(call, sort_keys=True).replace(progress_parameter(role["stack"]), PROGRESS_PARAMETER)
    line = line.replace(role["stack"], CLUSTER_STACK)
    line = re.sub(rf"\b{re.escape(role['cluster'] or DEFAULT_CLUSTER)}\b", FORMER_DEFAULT, line)
    for pattern, wanted in _RANDOM:
        line = pattern.sub(wanted, line)
    return line
