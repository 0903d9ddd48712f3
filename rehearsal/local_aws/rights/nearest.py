"""The statement of a role's policies that is closest to allowing a call."""

import json
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from rehearsal.local_aws.rights.need import Need

_LONGEST = 300


def explain(need: Need, policies: Iterable[Iterable[Any]], *, bounded: bool) -> str:
    """Describe the statement that is closest to allowing a denied call, and the part that does not match.

    Args:
        policies: statements of each policy, as ministack parses them.
        bounded: True if the role has a permissions boundary.
    """
    statements = [each for policy in policies for each in policy if each.effect == "Allow"]
    named = [each for each in statements if _fits(need.action.lower(), each.actions, lower=True)]
    fitting = [each for each in named if _fits(need.resource, each.resources)]
    if fitting and not any(each.conditions == {} for each in fitting):
        wanted = json.dumps(fitting[0].conditions)
        has = json.dumps(dict(need.context))
        return (
            f"nearest: statement {_name(fitting[0])} wants {_short(wanted)}, and the call has {_short(has)}"
        )
    if fitting:
        return f"statement {_name(fitting[0])} allows it; " + (
            "the permissions boundary does not" if bounded else "another policy does not"
        )
    if named:
        resources = ", ".join(named[0].resources)
        return f"nearest: statement {_name(named[0])} allows it only on {_short(resources)}"
    same = [each for each in statements if any(a.startswith(f"{need.service}:") for a in each.actions)]
    if same:
        closest = next((each for each in same if _fits(need.resource, each.resources)), same[0])
        return f"nearest: statement {_name(closest)}, of the same service, does not name the action"
    return f"none of {len(statements)} statements names an action of {need.service}"


def _fits(value: str, patterns: Iterable[str], *, lower: bool = False) -> bool:
    found = [each.lower() if lower else each for each in patterns]
    return any(fnmatchcase(value, each.replace("[", "[[]")) for each in found)


def _name(statement: Any) -> str:
    return statement.sid or f"for {_short(', '.join(statement.actions))}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
