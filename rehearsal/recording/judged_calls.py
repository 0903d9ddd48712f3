"""The provider's judged calls in a form that does not differ between runs, for tests without a local AWS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import boto3

from rehearsal.deployed import client_options
from rehearsal.local_aws.address import LocalAwsAddress
from rehearsal.local_aws.rights.need import Need, arn

BUCKET, PROGRESS_PARAMETER, PROGRESS_GROUP = "scripts", "/progress", "progress"
"""Fixed names in a recording, which replace a run's generated names."""
OWN_STACK = arn("cloudformation", "stack/TrainingClusterStack/00000000-0000-0000-0000-000000000000")

_NEVER_DENIED = "sts:GetCallerIdentity"

# Parts of identifiers that differ between runs, and their replacements in a recording.
_RANDOM = (
    (re.compile(r"\b(i|fs|lt|subnet|vpc|sg|eni)-[0-9a-f]{8,17}\b"), r"\1-0123456789abcdef0"),
    (re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"), "00000000-0000-0000-0000-000000000000"),
    (re.compile(r"-(?=\d*[A-Z])[A-Z0-9]{12,13}(?=$|[/:\"])"), "-A1B2C3D4E5F6"),
    (re.compile(r"-20\d{10}\b"), "-202601010000"),
    (re.compile(r"\bparallelcluster-[0-9a-f]{16}-v1"), "parallelcluster-0123456789abcdef-v1"),
    (re.compile(r"/clusters/training-[a-z0-9]{16}\b"), "/clusters/training-0123456789abcdef"),
)


@dataclass(frozen=True, kw_only=True)
class RecordedCall:
    """One right that the provider needed, and the call that needed it."""

    need: Need
    by: str
    """The request, or the resource type and operation of CloudFormation."""


def provider_of(address: LocalAwsAddress) -> tuple[str, dict[str, str]]:
    """Return the name of the deployed provider's role, and the generated names with those of a recording."""
    functions = boto3.client("lambda", endpoint_url=address.url, **client_options(address))
    for page in functions.get_paginator("list_functions").paginate():
        for function in page["Functions"]:
            variables = function.get("Environment", {}).get("Variables", {})
            if "PROGRESS_LOG_GROUP" in variables:
                return function["Role"].rpartition("/")[2], {
                    variables["LOGS_BUCKET"]: BUCKET,
                    variables["PROGRESS_PARAMETER"]: PROGRESS_PARAMETER,
                    variables["PROGRESS_LOG_GROUP"]: PROGRESS_GROUP,
                }
    raise LookupError("no function of the deployed stacks has PROGRESS_LOG_GROUP in its environment")


def record(lines: Iterable[str], *, role: str, names: Mapping[str, str]) -> str:
    """Return one line for each action, caller and kind of resource among the calls of a role.

    Args:
        lines: lines of `judged_calls` of the local AWS.
        role: name of the role.
        names: names of this run, with those of the recording.
    """
    own = [each for each in lines if json.loads(each)["role"] == role]
    chosen: dict[tuple[str, ...], str] = {}
    for line in sorted(_normalised(each, names) for each in own):
        call = json.loads(line)
        call.pop("role")
        if call["action"] == _NEVER_DENIED:
            continue
        kind = re.split(r"[/*]", call["resource"])[0]
        key = (call["action"], call["by"], kind, ",".join(sorted(call["context"])))
        chosen.setdefault(key, json.dumps(call, sort_keys=True))
    return "".join(f"{line}\n" for line in sorted(chosen.values()))


def merged(*recordings: str) -> str:
    """Return the calls of several recordings, each once."""
    return "".join(sorted({line for text in recordings for line in text.splitlines(keepends=True)}))


def parse(recording: str) -> list[RecordedCall]:
    """Read the calls of a recording."""
    return [
        RecordedCall(
            need=Need(action=call["action"], resource=call["resource"], context=call["context"]),
            by=call["by"],
        )
        for call in map(json.loads, recording.splitlines())
    ]


def _normalised(line: str, names: Mapping[str, str]) -> str:
    for actual in sorted(names, key=len, reverse=True):
        line = line.replace(actual, names[actual])
    for pattern, wanted in _RANDOM:
        line = pattern.sub(wanted, line)
    return line
