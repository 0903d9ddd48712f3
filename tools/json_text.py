"""JSON that a program writes and git compares: a line for each entry, and no more."""

import json


def json_text(value: object, *, levels: int) -> str:
    """Return JSON with a line for each entry of the outer levels, and the rest of an entry in its line.

    Args:
        value: what JSON can hold.
        levels: number of levels whose entries get a line each.
    """
    return _text(value, levels, "\n") + "\n"


def _text(value: object, levels: int, line: str) -> str:
    if not levels or not isinstance(value, dict | list) or not value:
        return json.dumps(value)
    inner = line + " "
    if isinstance(value, list):
        entries = [_text(each, levels - 1, inner) for each in value]
        return f"[{inner}{f',{inner}'.join(entries)}{line}]"
    entries = [f"{json.dumps(key)}: {_text(each, levels - 1, inner)}" for key, each in value.items()]
    return f"{{{inner}{f',{inner}'.join(entries)}{line}}}"
