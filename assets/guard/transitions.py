"""The refused changes of guarded values, with a message for each."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

Values = dict[str, dict[str, str]]
"""`value`, `may` (the policy: constructs/training_cluster/functions/guard.py) and `safe_way` of each flag."""

WITHOUT_CLUSTERS = "without clusters"
"""Policy of a value that may change while no cluster uses the stack."""

# A custom resource's answer is JSON of 4096 bytes at most; ids and CDK's framework need the rest.
MAX_REASON_BYTES = 2500


def refused_changes(old: Values, new: Values) -> list[str]:
    """Explain each change that would replace a resource with data; empty if there is none.

    A value that only one side has is no change: it is added with the resource that it protects, and removed
    when that resource is adopted by its id, which is another value.
    """
    changed = {
        name: (old[name]["value"], wanted)
        for name, wanted in new.items()
        if name in old and old[name]["value"] != wanted["value"]
    }
    return [
        _explain(name, before, wanted)
        for name, (before, wanted) in changed.items()
        if not _is_allowed(before, wanted["value"], wanted["may"])
    ] or list(_changed_together(changed))


def forgotten_flags(
    stack: str, cluster: str, last: Mapping[str, Any], left_out: Mapping[str, str]
) -> list[str]:
    """Explain that a deploy leaves out flags of the last one; empty if it leaves out none.

    Args:
        stack, cluster: names of the cluster's stack and of the cluster.
        last: flags of the last deploy of the cluster's stack.
        left_out: flags that this deploy does not give, each with its default.
    """
    lost = {flag: last[flag] for flag in left_out if str(last.get(flag, left_out[flag])) != left_out[flag]}
    if not lost:
        return []
    again = " ".join(f"-c {shlex.quote(f'{flag}={value}')}" for flag, value in lost.items())
    one = next(iter(lost))
    return [
        f"The last deploy of {stack} had {again}, and this one leaves that out. Type it again, or type "
        f"trainctl deploy --cluster {cluster}, which keeps it. A flag without a value gives it up: -c {one}="
    ]


def refusal(changes: list[str]) -> str:
    """Join the explanations to one message, within CloudFormation's limit."""
    text, mark = " | ".join(["Nothing was changed.", *changes]), " ... (cut)"
    if len(json.dumps(text)) <= MAX_REASON_BYTES:
        return text
    start = text[:MAX_REASON_BYTES]
    while len(json.dumps(start + mark)) > MAX_REASON_BYTES:
        start = start[:-50]
    return start + mark


def _changed_together(changed: dict[str, tuple[str, dict[str, str]]]) -> Iterator[str]:
    """Refuse to combine a change that cannot be rolled back with others, which could fail."""
    for name, (before, wanted) in changed.items():
        others = ", ".join(each for each in changed if each != name)
        if wanted["may"] in ("alone", "grows") and others:
            first = f"-c {name}={wanted['value']}" if wanted["value"] else f"without -c {name}=..."
            yield (
                f"{name}: {_shown(before)} -> {_shown(wanted['value'])} could not be rolled back if the "
                f"change of {others} failed. Deploy {first} first, with {others} as before"
            )


def _is_allowed(old: str, new: str, policy: str) -> bool:
    if policy == "grows":
        return old.isdecimal() and new.isdecimal() and int(new) > int(old)
    if policy == "adopts":  # the stack's own resource is retained, and an existing one is used instead
        return not old
    return policy in ("alone", "changes")


def _explain(name: str, old: str, wanted: dict[str, str]) -> str:
    new, policy = wanted["value"], wanted["may"]
    if policy == "grows":
        why = "is not possible: it can only grow"
    elif policy == "adopts" and not new:
        why = "would replace it with a new, empty one"
    elif policy == "adopts":
        why = "would replace it with another one"
    elif policy == WITHOUT_CLUSTERS:
        why = "is not possible while a cluster exists"
    elif policy == "given":
        why = "was not asked for: this deploy leaves the flag out, and would change it for all clusters"
    else:
        why = "would replace a resource that holds data with an empty one"
    safe_way = wanted["safe_way"].replace("{old}", _shown(old)).replace("{new}", _shown(new))
    return f"{name}: {_shown(old)} -> {_shown(new)} {why}. {safe_way}"


def _shown(value: str) -> str:
    return value or "(own)"
