"""Pure: which changes of which values are refused, and what a person is told about each."""

from __future__ import annotations

import json
from collections.abc import Iterator

Values = dict[str, dict[str, str]]
"""By name, which is the flag's: `value`, `may` (guard.py's Kept says what each word means), `safe_way`."""

# A custom resource's answer is JSON of 4096 bytes at most; ids and what CDK's framework adds take the rest.
MAX_REASON_BYTES = 2500


def refused_changes(old: Values, new: Values) -> list[str]:
    """Explain every change that would replace what holds data; empty when there is none.

    A value that is on one side only is no change: it comes with what it protects, and goes with it when that
    is adopted by its id, which is a value of its own.
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
    ] or list(_in_company(changed))


def refusal(changes: list[str]) -> str:
    """One message of all the explanations, within what CloudFormation takes."""
    text, mark = " | ".join(["Nothing was changed.", *changes]), " ... (cut)"
    if len(json.dumps(text)) <= MAX_REASON_BYTES:
        return text
    kept = text[:MAX_REASON_BYTES]
    while len(json.dumps(kept + mark)) > MAX_REASON_BYTES:
        kept = kept[:-50]
    return kept + mark


def _in_company(changed: dict[str, tuple[str, dict[str, str]]]) -> Iterator[str]:
    """A rollback cannot take everything back: nothing that could fail may go along with such a change."""
    for name, (before, wanted) in changed.items():
        others = ", ".join(each for each in changed if each != name)
        if wanted["may"] in ("alone", "grows") and others:
            first = f"-c {name}={wanted['value']}" if wanted["value"] else f"without -c {name}=..."
            yield (
                f"{name}: {_shown(before)} -> {_shown(wanted['value'])} could not be taken back if the "
                f"change of {others} failed. Deploy {first} first, with {others} as before"
            )


def _is_allowed(old: str, new: str, may: str) -> bool:
    if may == "grows":
        return old.isdecimal() and new.isdecimal() and int(new) > int(old)
    if may == "adopts":  # the own resource is retained, and one that is there already is taken instead
        return not old
    return may in ("alone", "changes")


def _explain(name: str, old: str, wanted: dict[str, str]) -> str:
    new, may = wanted["value"], wanted["may"]
    if may == "grows":
        why = "is not possible, it only grows"
    elif may == "adopts" and not new:
        why = "would make a new, empty one in its place"
    elif may == "adopts":
        why = "would put another one in its place"
    else:
        why = "would replace what holds data by something empty"
    safe_way = wanted["safe_way"].replace("{old}", _shown(old)).replace("{new}", _shown(new))
    return f"{name}: {_shown(old)} -> {_shown(new)} {why}. {safe_way}"


def _shown(value: str) -> str:
    return value or "(own)"
